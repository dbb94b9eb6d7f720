import { CATALOGUE } from '#src/base/errors/errors.ts';
import { FAILURES } from '#src/base/errors/failures.ts';

/** The schema of every error response. */
const PROBLEM: Readonly<Record<string, unknown>> = {
  type: 'object',
  description: 'A problem document (RFC 9457). Some codes have additional members.',
  required: ['type', 'title', 'status', 'detail', 'instance', 'code', 'requestId'],
  properties: {
    type: { type: 'string', format: 'uri' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    instance: { type: 'string' },
    code: { $ref: '#/components/schemas/ErrorCode' },
    requestId: { type: 'string' },
    errors: {
      type: 'array',
      description: 'The mistakes in the request, one by one.',
      items: { $ref: '#/components/schemas/ProblemPlace' },
    },
  },
  examples: [
    {
      type: 'urn:troupe:error:invalid_request',
      title: CATALOGUE.invalid_request.title,
      status: 400,
      detail: '/cells/0/cell_id is required.',
      instance: '/api/v3/notebooks',
      code: 'invalid_request',
      requestId: 'req_0f3c1a9b2e4d1',
      errors: [{ path: '/cells/0/cell_id', message: 'is required' }],
    },
  ],
};

/** The schema of one mistake in a request. */
const PROBLEM_PLACE: Readonly<Record<string, unknown>> = {
  type: 'object',
  required: ['path', 'message'],
  properties: {
    path: {
      type: 'string',
      description: 'JSON pointer into the body, or `query/<name>`, `header/<name>`.',
    },
    message: { type: 'string' },
  },
};

const titles = Object.entries(CATALOGUE).map(([code, { title }]) => [code, title] as const);

/** The schemas of errors that no route declares, by name. */
export const ERROR_SCHEMAS = {
  Problem: PROBLEM,
  ProblemPlace: PROBLEM_PLACE,
  ErrorCode: codeSchema('Why a request was refused.', titles),
} as const;

/**
 * The schemas with the lists of codes. They replace the schemas of the same names in `src/contract/wire`, which have no lists.
 */
export const FAILURE_SCHEMAS = {
  FailureCode: codeSchema('Why a run or a session failed.', Object.entries(FAILURES)),
} as const;

/** Returns the schema of a code. It is not an enum, because clients must tolerate codes that later versions add. */
function codeSchema(description: string, codes: readonly (readonly [code: string, meaning: string])[]) {
  const list = codes.map(([code, meaning]) => `- \`${code}\`: ${meaning}`).join('\n');
  return {
    type: 'string',
    description: `${description} A published code never changes; later versions may add codes.\n\n${list}`,
    'x-extensible-enum': codes.map(([code]) => code),
  };
}
