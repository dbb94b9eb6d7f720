/** The OpenAPI 3.1 document. It is made from the route declarations alone. */
import type { TSchema } from 'typebox';
import { CATALOGUE, type ErrorCode } from '#src/core/errors.ts';
import type { Auth } from '#src/core/principal.ts';
import { paramNamesOf, type ResponseSpec, type Route } from '../route.ts';
import { ComponentSchemas } from './component-schemas.ts';
import { errorsByStatus } from './operation-errors.ts';

type Json = Readonly<Record<string, unknown>>;

export interface OpenApiOptions {
  readonly version: string;
  readonly requirements: Auth['requirements'];
}

export interface OpenApiDocument {
  readonly openapi: string;
  readonly info: Json;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Json>>>>;
  readonly components: Readonly<Record<string, Json>>;
  readonly [member: string]: unknown;
}

/** Returns the document for these routes. Throws when two different schemas have the same name. */
export function createOpenApi(routes: readonly Route[], options: OpenApiOptions): OpenApiDocument {
  const schemas = new ComponentSchemas();
  schemas.add('Problem', PROBLEM);
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, '{$1}');
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
    tags: [...new Set(routes.flatMap((route) => route.tags))].map((name) => ({ name })),
    paths,
    components: {
      schemas: schemas.all,
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description:
            'An access token. The names listed at an operation are the scopes that the token needs.',
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

function operation(route: Route, { requirements }: OpenApiOptions, schemas: ComponentSchemas): Json {
  const needs = route.access === 'public' ? undefined : requirements(route.access.action);
  const role = needs === undefined ? '' : `Role: ${needs.role} or higher.`;
  const description = [route.description ?? '', role].filter((part) => part !== '').join('\n\n');
  return {
    operationId: route.operationId,
    summary: route.summary,
    ...(description === '' ? {} : { description }),
    tags: route.tags,
    security: needs === undefined ? [] : [{ bearer: needs.scopes, workspace: [] }],
    parameters: parameters(route, schemas),
    ...(route.body === undefined ? {} : { requestBody: requestBody(route.body, route, schemas) }),
    responses: responses(route, schemas),
  };
}

function parameters(route: Route, schemas: ComponentSchemas): Json[] {
  const text = { type: 'string' };
  return [
    ...paramNamesOf(route.path).map((name) => ({ name, in: 'path', required: true, schema: text })),
    ...Object.entries(route.query?.properties ?? {}).map(([name, schema]) => ({
      name,
      in: 'query',
      required: (route.query?.required.includes(name) ?? false) && !('default' in schema),
      schema: schemas.convert(schema),
    })),
    ...Object.entries(route.headers ?? {}).map(([name, description]) => ({
      name,
      in: 'header',
      description,
      schema: text,
    })),
    ...(route.method === 'POST' && route.access !== 'public' ? [IDEMPOTENCY_KEY] : []),
    REQUEST_ID,
  ];
}

function requestBody(body: TSchema, route: Route, schemas: ComponentSchemas): Json {
  return {
    required: route.optionalBody !== true,
    content: { 'application/json': { schema: schemas.convert(body) } },
  };
}

function responses(route: Route, schemas: ComponentSchemas): Record<string, Json> {
  const byStatus: Record<string, Json> = {};
  const problems = errorsByStatus(route);
  const statuses = new Set([...Object.keys(route.responses).map(Number), ...problems.keys()]);
  for (const status of [...statuses].sort((a, b) => a - b)) {
    const declared = route.responses[status];
    const codes = problems.get(status) ?? [];
    byStatus[status] = {
      description: [declared?.description ?? '', describeCodes(codes)]
        .filter((part) => part !== '')
        .join('\n\n'),
      headers: {
        'X-Request-Id': {
          description: 'Identifies the request. Quote it when you report a problem.',
          schema: { type: 'string' },
        },
        ...headers(declared),
      },
      ...content(declared, codes, schemas),
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
    const { contentType = 'application/json' } = declared;
    for (const type of typeof contentType === 'string' ? [contentType] : contentType) {
      types[type] = mediaType(type, declared.schema, schemas);
    }
  }
  if (codes.length > 0) {
    const code = { properties: { code: { enum: codes } } };
    types['application/problem+json'] = {
      schema: { allOf: [{ $ref: '#/components/schemas/Problem' }, code] },
    };
  }
  return Object.keys(types).length === 0 ? {} : { content: types };
}

/** OpenAPI 3.1 cannot describe the items of a stream, so the schema of each `data:` line is an extension. */
function mediaType(contentType: string, schema: TSchema | undefined, schemas: ComponentSchemas): Json {
  const converted = schema === undefined ? {} : { schema: schemas.convert(schema) };
  if (contentType !== 'text/event-stream') return converted;
  return {
    schema: {
      type: 'string',
      description: 'Server-sent events: an `id:` line, then one `data:` line of JSON.',
    },
    'x-event-schema': converted.schema ?? {},
  };
}

function headers(declared: ResponseSpec | undefined): Json {
  const named = Object.entries(declared?.headers ?? {});
  return Object.fromEntries(
    named.map(([name, description]) => [name, { description, schema: { type: 'string' } }]),
  );
}

function describeCodes(codes: readonly ErrorCode[]): string {
  return codes.map((code) => `- \`${code}\`: ${CATALOGUE[code].title}`).join('\n');
}

const REQUEST_ID: Json = {
  name: 'X-Request-Id',
  in: 'header',
  description: 'Returned with the response. The server generates one when it is missing.',
  schema: { type: 'string', pattern: '^[A-Za-z0-9._-]{1,128}$' },
};

const IDEMPOTENCY_KEY: Json = {
  name: 'Idempotency-Key',
  in: 'header',
  description:
    'A request that is repeated with the same key and body within 24 hours takes effect once; the repetition gets the ' +
    'first response again.',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[\\x21-\\x7e]+$' },
};

const PROBLEM: Json = {
  type: 'object',
  description: 'A problem document (RFC 9457). Some codes have additional members.',
  required: ['type', 'title', 'status', 'detail', 'instance', 'code', 'requestId'],
  properties: {
    type: { type: 'string', format: 'uri' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    instance: { type: 'string' },
    code: { type: 'string', enum: Object.keys(CATALOGUE) },
    requestId: { type: 'string' },
    errors: {
      type: 'array',
      items: {
        type: 'object',
        required: ['path', 'message'],
        properties: {
          path: {
            type: 'string',
            description: 'JSON pointer into the body, or `query/<name>`, `header/<name>`.',
          },
          message: { type: 'string' },
        },
        additionalProperties: false,
      },
    },
  },
};
