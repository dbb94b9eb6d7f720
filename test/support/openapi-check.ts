/**
 * Checks every response in the test suite against the OpenAPI document: operation, status, media type, shape of the body,
 * code of a problem, and each event of a stream.
 */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { PAGE_OPERATIONS } from '#src/contract/wire/operations/pages.ts';
import { SIGN_IN_OPERATIONS } from '#src/contract/wire/operations/sign-in.ts';
import type { OpenApiDocument } from '#src/http/openapi/document.ts';

/** A response, and its request. */
export interface Answer {
  readonly method: string;
  /** The requested path; its query is ignored. */
  readonly path: string;
  readonly status: number;
  /** Empty when there is no body. */
  readonly contentType: string;
  /** Parsed JSON, or text. For an event stream, the text so far. */
  readonly body: unknown;
}

/** Throws when a response does not match the document. */
export type AnswerCheck = (answer: Answer) => void;

/** The pages and their files, which the document leaves out. */
const PAGES = Object.values({ ...PAGE_OPERATIONS, ...SIGN_IN_OPERATIONS }).map(
  ({ method, path, responses }) => ({
    method: method.toLowerCase(),
    path: new RegExp(`^${path.replace(/:\w+(\*?)/g, (_, open: string) => (open === '' ? '[^/]+' : '.*'))}$`),
    responses,
  }),
);

const PROBLEM = { $ref: 'openapi#/components/schemas/Problem' };

/** Returns a check that throws with the operation and the first mismatches. */
export function createAnswerCheck(document: OpenApiDocument): AnswerCheck {
  // The document itself is checked elsewhere (document.test.ts), and code that runs a few times gains nothing from optimization.
  const ajv = new Ajv2020({
    strict: false,
    allErrors: true,
    validateSchema: false,
    code: { optimize: false },
  });
  addFormats.default(ajv);
  ajv.addSchema(closedComponents(document), 'openapi');
  const templates = Object.keys(document.paths).map((path) => ({ path, segments: path.split('/') }));
  const validators = new Map<string, ValidateFunction>();

  const matches = (name: string, schema: () => object, value: unknown, answer: Answer) => {
    const validate = validators.get(name) ?? ajv.compile(schema());
    validators.set(name, validate);
    if (!validate(value)) fail(answer, ajv.errorsText(validate.errors, { separator: '\n  ' }));
  };

  const isProblem = (answer: Answer) => matches('Problem', () => PROBLEM, answer.body, answer);

  return (answer) => {
    const method = answer.method.toLowerCase();
    const isHead = method === 'head';
    const template = findTemplate(templates, answer.path);
    const responses =
      template === undefined ? undefined : document.paths[template]?.[isHead ? 'get' : method]?.responses;
    if (template === undefined || responses === undefined) {
      if (method === 'options' && answer.status === 204) return;
      const asked = isHead ? 'get' : method;
      const page = PAGES.find((one) => one.method === asked && one.path.test(answer.path.split('?', 1)[0]!));
      if (page !== undefined) {
        if (answer.status in page.responses) return;
        if (!isHead) isProblem(answer);
        return;
      }
      const expected = template === undefined ? 404 : 405;
      if (answer.status !== expected) fail(answer, `no such operation, so it should be ${expected}`);
      if (!isHead) isProblem(answer);
      return;
    }
    const response = memberOf(responses, String(answer.status));
    if (response === undefined) fail(answer, 'the status is not declared');
    const mediaType = answer.contentType.split(';', 1)[0]!.trim();
    const content = memberOf(response, 'content');
    if (content === undefined) {
      if (mediaType !== '') fail(answer, `no body is declared, got ${mediaType}`);
      return;
    }
    const range = memberOf(content, mediaType) === undefined ? '*/*' : mediaType;
    const media = memberOf(content, range);
    if (media === undefined) fail(answer, `the media type ${mediaType || '(none)'} is not declared`);
    if (isHead) return;
    const isStream = mediaType === 'text/event-stream';
    const bodies = isStream ? eventsOf(String(answer.body)) : [answer.body];
    if (isStream || (range !== '*/*' && mediaType.endsWith('json'))) {
      const name = `${method} ${template} ${answer.status} ${range}`;
      const schema = () => closedReference(memberOf(media, 'schema'));
      for (const body of bodies) matches(name, schema, body, answer);
    }
    if (mediaType !== 'application/problem+json') return;
    const code = memberOf(answer.body, 'code');
    const codes = memberOf(response, 'x-error-codes');
    if (!Array.isArray(codes) || !codes.includes(code))
      fail(answer, `the code ${String(code)} is not declared`);
  };
}

/**
 * Returns the document with all schemas closed. It allows unknown members in responses, so that later versions can add
 * some, but this version must declare every member that it sends.
 */
export function withClosedSchemas(document: OpenApiDocument): OpenApiDocument {
  return { ...document, paths: closeAll(document.paths), ...closedComponents(document) };
}

function closedComponents(document: OpenApiDocument): Pick<OpenApiDocument, 'components'> {
  const schemas = Object.entries(document.components.schemas ?? {});
  const { Problem: open, ...rest } = Object.fromEntries(schemas);
  return { components: { ...document.components, schemas: { ...closeAll(rest), Problem: open } } };
}

/** Returns a schema of the document, closed, as one that stands alone and refers to the document's components. */
function closedReference(schema: unknown): object {
  const text = JSON.stringify(closeAll(schema)).replaceAll('"$ref":"#/', '"$ref":"openapi#/');
  return JSON.parse(text) as object;
}

function closeAll<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(closeAll) as T;
  const members = Object.entries(value).map(([name, member]): [string, unknown] => [name, closeAll(member)]);
  const copy: Record<string, unknown> = Object.fromEntries(members);
  if (copy.type === 'object' && copy.properties !== undefined) copy.additionalProperties ??= false;
  return copy as T;
}

/** Returns the template that the path matches; of several, the one with the longest fixed beginning. */
function findTemplate(
  templates: readonly { path: string; segments: readonly string[] }[],
  requested: string,
): string | undefined {
  const segments = requested.split('?', 1)[0]!.split('/');
  const isParam = (segment: string) => segment.startsWith('{');
  const candidates = templates.filter(
    (template) =>
      (template.segments.length === segments.length || isOpenEnded(template.path, segments)) &&
      template.segments.every(
        (part, i) => part === segments[i] || part === OPEN_END || (isParam(part) && segments[i] !== ''),
      ),
  );
  const rank = (segmentsOf: readonly string[]) =>
    segmentsOf.map((part) => (isParam(part) ? '1' : '0')).join('');
  return candidates.sort((a, b) => (rank(a.segments) < rank(b.segments) ? -1 : 1))[0]?.path;
}

/** The parameter that takes the rest of the path, slashes included. */
const OPEN_END = '{path}';

function isOpenEnded(template: string, segments: readonly string[]): boolean {
  return template.endsWith(`/${OPEN_END}`) && segments.length >= template.split('/').length;
}

function eventsOf(text: string): unknown[] {
  const whole = text.slice(0, text.lastIndexOf('\n\n') + 1);
  return whole
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => JSON.parse(line.slice('data: '.length)));
}

function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  return Object.entries(value).find(([key]) => key === name)?.[1];
}

function fail(answer: Answer, why: string): never {
  const { method, path, status, contentType, body } = answer;
  const shown = JSON.stringify(body)?.slice(0, 600) ?? '';
  throw new Error(
    `${method} ${path} answered ${status} ${contentType}, against the document:\n  ${why}\n  ${shown}`,
  );
}
