/**
 * Checks every response in the test suite against the OpenAPI document: operation, status, media type, shape of the body,
 * code of a problem, and each event of a stream.
 */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { OpenApiDocument } from '#src/http/openapi/document.ts';
import { PAGE_OPERATIONS } from '#src/wire/operations/pages.ts';

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
const PAGES = Object.values(PAGE_OPERATIONS).map(({ path, responses }) => ({
  path: new RegExp(`^${path.replace(/:\w+/g, '[^/]+')}$`),
  responses,
}));

/** Returns a check that throws with the operation and the first mismatches. */
export function createAnswerCheck(document: OpenApiDocument): AnswerCheck {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  addFormats.default(ajv);
  ajv.addSchema(withClosedSchemas(document), 'openapi');
  const templates = Object.keys(document.paths).map((path) => ({ path, segments: path.split('/') }));
  const validators = new Map<string, ValidateFunction>();

  const matches = (pointer: readonly string[], value: unknown, answer: Answer) => {
    const $ref = `openapi#/${pointer.map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/')}`;
    const validate = validators.get($ref) ?? ajv.compile({ $ref });
    validators.set($ref, validate);
    if (!validate(value)) fail(answer, ajv.errorsText(validate.errors, { separator: '\n  ' }));
  };

  return (answer) => {
    const method = answer.method.toLowerCase();
    const isHead = method === 'head';
    const template = findTemplate(templates, answer.path);
    const responses =
      template === undefined ? undefined : document.paths[template]?.[isHead ? 'get' : method]?.responses;
    if (template === undefined || responses === undefined) {
      if (method === 'options' && answer.status === 204) return;
      const page = PAGES.find(({ path }) => path.test(answer.path.split('?', 1)[0]!));
      if (page !== undefined && (isHead || method === 'get')) {
        if (answer.status in page.responses) return;
        if (!isHead) matches(['components', 'schemas', 'Problem'], answer.body, answer);
        return;
      }
      const expected = template === undefined ? 404 : 405;
      if (answer.status !== expected) fail(answer, `no such operation, so it should be ${expected}`);
      if (!isHead) matches(['components', 'schemas', 'Problem'], answer.body, answer);
      return;
    }
    const pointer = ['paths', template, isHead ? 'get' : method, 'responses', String(answer.status)];
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
    const schema = [...pointer, 'content', range, 'schema'];
    if (mediaType === 'text/event-stream')
      for (const event of eventsOf(String(answer.body))) matches(schema, event, answer);
    else if (range !== '*/*' && mediaType.endsWith('json')) matches(schema, answer.body, answer);
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
  const schemas = Object.entries(document.components.schemas ?? {});
  const { Problem: open, ...rest } = Object.fromEntries(schemas);
  const components = { ...document.components, schemas: { ...closeAll(rest), Problem: open } };
  return { ...document, paths: closeAll(document.paths), components };
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
