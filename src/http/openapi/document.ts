/** The OpenAPI 3.1 document. It is made from the route declarations alone. */

import type { Auth, Requirements } from '#src/base/caller/principal.ts';
import { CATALOGUE, type ErrorCode } from '#src/base/errors/errors.ts';
import type { ResponseSpec } from '#src/contract/wire/operations/operation.ts';
import { EmptyBodySchema } from '#src/contract/wire/shape.ts';
import { changesData, needsRoom, paramNamesOf, type Route } from '../route.ts';
import { ComponentSchemas } from './component-schemas.ts';
import { ERROR_SCHEMAS, FAILURE_SCHEMAS } from './error-schemas.ts';
import { AGENTS_EXAMPLES } from './examples/agents.ts';
import { DATASOURCES_EXAMPLES } from './examples/datasources.ts';
import { withDerivedExamples } from './examples/derived-examples.ts';
import { IDENTITY_EXAMPLES } from './examples/identity.ts';
import { NOTEBOOKS_EXAMPLES } from './examples/notebooks.ts';
import { OPERATIONS_EXAMPLES } from './examples/operations.ts';
import { PACKAGES_EXAMPLES } from './examples/packages.ts';
import { parametersOf, takesIdempotencyKey, usualHeaderName } from './parameters.ts';
import { TAGS } from './tags.ts';

type Json = Readonly<Record<string, unknown>>;

export interface OpenApiOptions {
  readonly version: string;
  readonly requirements: Auth['requirements'];
  /**
   * Schemas that replace schemas of the same name, for shapes that are not defined in `src/contract/wire`.
   */
  readonly schemas?: Readonly<Record<string, object>>;
}

export interface OpenApiDocument {
  readonly openapi: string;
  readonly info: Json;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Json>>>>;
  readonly components: Readonly<Record<string, Json>>;
  readonly [member: string]: unknown;
}

/** Returns the document for these routes, except those of pages. Throws when two different schemas have the same name. */
export function createOpenApi(allRoutes: readonly Route[], options: OpenApiOptions): OpenApiDocument {
  const routes = allRoutes.filter(({ isUndocumented }) => isUndocumented !== true);
  const answers = routes.flatMap(({ responses }) =>
    Object.values(responses).flatMap(({ schema }) => schema ?? []),
  );
  const examples = withDerivedExamples(answers, RESPONSE_EXAMPLES);
  const schemas = new ComponentSchemas({ ...FAILURE_SCHEMAS, ...options.schemas }, examples);
  for (const { body } of routes) {
    if (body !== undefined && body !== EmptyBodySchema) schemas.convert(body, 'request');
  }
  for (const [name, schema] of Object.entries(ERROR_SCHEMAS)) schemas.add(name, schema, 'response');
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)\*?/g, '{$1}');
    paths[path] ??= {};
    paths[path][route.method.toLowerCase()] = operation(route, options, schemas);
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Troupe',
      version: options.version,
      description:
        'Notebooks, agents and data: live sessions, durable runs, event streams, encrypted connections.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    tags: [...new Set(routes.flatMap((route) => route.tags))].map(describeTag),
    paths,
    components: {
      schemas: schemas.all,
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description: 'An access token. Each operation lists the scopes that the token needs.',
        },
        workspace: {
          type: 'apiKey',
          in: 'header',
          name: 'Service-Workspace-Id',
          description: 'The id of the workspace that the request acts in.',
        },
      },
    },
  };
}

function describeTag(name: string): Json {
  const description = TAGS[name];
  return description === undefined ? { name } : { name, description };
}

function operation(route: Route, { requirements }: OpenApiOptions, schemas: ComponentSchemas): Json {
  const needs = typeof route.access === 'string' ? undefined : requirements(route.access.action);
  const role = needs === undefined ? '' : `Role: ${needs.role} or higher.`;
  const description = [route.description ?? '', role].filter((part) => part !== '').join('\n\n');
  return {
    operationId: route.operationId,
    summary: route.summary,
    ...(description === '' ? {} : { description }),
    tags: route.tags,
    security: securityOf(route, needs),
    parameters: parametersOf(route, schemas),
    ...requestBody(route, schemas),
    responses: responses(route, schemas),
  };
}

function securityOf({ access }: Route, needs: Requirements | undefined): Json[] {
  if (access === 'token') return [{ bearer: [] }];
  return needs === undefined ? [] : [{ bearer: needs.scopes, workspace: [] }];
}

/**
 * Returns the part of an operation about its body; nothing for a route that needs no body. Such a route accepts an empty object,
 * but generated clients need not send that.
 */
function requestBody({ body, optionalBody, takesBytes }: Route, schemas: ComponentSchemas): Json {
  if (takesBytes === true) return { requestBody: BYTES };
  if (body === undefined || body === EmptyBodySchema) return {};
  const content = { 'application/json': { schema: schemas.convert(body, 'request') } };
  return { requestBody: { required: optionalBody !== true, content } };
}

const BYTES: Json = {
  required: true,
  content: { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } },
};

function responses(route: Route, schemas: ComponentSchemas): Record<string, Json> {
  const byStatus: Record<string, Json> = {};
  const problems = errorsByStatus(route);
  const statuses = new Set([...Object.keys(route.responses).map(Number), ...problems.keys()]);
  for (const status of [...statuses].sort((a, b) => a - b)) {
    const declared = route.responses[status];
    const codes = problems.get(status) ?? [];
    byStatus[status] = {
      description: [declared?.description ?? '', describeStream(declared), describeCodes(codes)]
        .filter((part) => part !== '')
        .join('\n\n'),
      headers: {
        'X-Request-Id': {
          description: 'Identifies the request. Quote it when you report a problem.',
          schema: { type: 'string' },
        },
        ...headers(declared),
        ...(takesIdempotencyKey(route) && status < 300 ? IDEMPOTENCY_REPLAYED : {}),
        ...(RETRIED_LATER.has(status) ? RETRY_AFTER : {}),
      },
      ...content(declared, codes, schemas),
      ...(codes.length > 0 && { 'x-error-codes': codes }),
    };
  }
  return byStatus;
}

function content(
  declared: ResponseSpec | undefined,
  codes: readonly ErrorCode[],
  schemas: ComponentSchemas,
): Json {
  const types: Record<string, Json> = {};
  if (declared !== undefined && (declared.schema !== undefined || declared.contentType !== undefined)) {
    const { schema, contentType = 'application/json' } = declared;
    for (const type of typeof contentType === 'string' ? mediaTypesFor(contentType) : contentType) {
      types[type] = { schema: schema === undefined ? fileSchema(type) : schemas.convert(schema, 'response') };
    }
  }
  if (codes.length > 0)
    types['application/problem+json'] = { schema: { $ref: '#/components/schemas/Problem' } };
  return Object.keys(types).length === 0 ? {} : { content: types };
}

/**
 * Returns the media types to list for a content type. A media range becomes bytes, because many generators do not know ranges.
 */
function mediaTypesFor(contentType: string): readonly string[] {
  return contentType === '*/*' ? ['application/octet-stream', '*/*'] : [contentType];
}

/** Returns the schema of a response that is a file. */
function fileSchema(contentType: string): Json {
  if (contentType.endsWith('+json')) return { type: 'object' };
  return contentType.startsWith('text/') ? { type: 'string' } : { type: 'string', format: 'binary' };
}

function headers(declared: ResponseSpec | undefined): Json {
  const named = Object.entries(declared?.headers ?? {});
  return Object.fromEntries(
    named.map(([name, description]) => [usualHeaderName(name), { description, schema: { type: 'string' } }]),
  );
}

/** Statuses of refusals after which the same request may succeed. */
const RETRIED_LATER: ReadonlySet<number> = new Set([429, 503, 507]);

const IDEMPOTENCY_REPLAYED: Json = {
  'Idempotency-Replayed': {
    description:
      '`true` when an earlier request with the same idempotency key was carried out, and this is its response.',
    schema: { type: 'string' },
  },
};

const RETRY_AFTER: Json = {
  'Retry-After': {
    description: 'How many seconds to wait before the request is repeated.',
    required: true,
    schema: { type: 'integer', minimum: 1 },
  },
};

/** OpenAPI 3.1 cannot describe the items of a stream, so the schema of the media type describes each item. */
function describeStream(declared: ResponseSpec | undefined): string {
  if (declared?.contentType !== 'text/event-stream') return '';
  return 'Server-sent events. The schema is that of the JSON in the `data:` line of each event.';
}

function describeCodes(codes: readonly ErrorCode[]): string {
  return codes.map((code) => `- \`${code}\`: ${CATALOGUE[code].title}`).join('\n');
}

/**
 * Returns the codes of all errors of an operation, by status: the codes that the operation declares, and the codes with which
 * admission can refuse a request before the handler runs.
 */
function errorsByStatus(route: Route): Map<number, ErrorCode[]> {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of [...new Set([...admissionErrors(route), ...(route.errors ?? [])])].sort()) {
    const { status } = CATALOGUE[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  return byStatus;
}

function admissionErrors(route: Route): ErrorCode[] {
  const codes: ErrorCode[] = ['invalid_request', 'internal', 'record_damaged'];
  if (route.whileDraining !== true) codes.push('unavailable');
  if (changesData(route)) codes.push('read_only');
  if (needsRoom(route)) codes.push('storage_full');
  if (paramNamesOf(route.path).length > 0) codes.push('not_found');
  if (route.body !== undefined) codes.push('malformed_json', 'body_too_large', 'unsupported_media_type');
  if (route.takesBytes === true) codes.push('unsupported_media_type');
  if (route.sameOrigin === true) codes.push('cross_origin');
  if (route.access === 'public') return codes;
  codes.push('unauthenticated', 'too_many_attempts');
  if (route.access === 'token') return codes;
  codes.push('missing_workspace', 'not_found', 'missing_scope', 'role_too_low');
  if (route.method === 'POST') codes.push('idempotency_key_reused', 'idempotency_in_progress');
  return codes;
}

const RESPONSE_EXAMPLES: Readonly<Record<string, unknown>> = {
  ...NOTEBOOKS_EXAMPLES,
  ...AGENTS_EXAMPLES,
  ...DATASOURCES_EXAMPLES,
  ...IDENTITY_EXAMPLES,
  ...OPERATIONS_EXAMPLES,
  ...PACKAGES_EXAMPLES,
};
