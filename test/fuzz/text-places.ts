/**
 * The places of requests in which a client may write a text: parameters of paths and queries, headers, cookies, and members of bodies at any
 * depth, of every operation of the API, of marimo's page, and of MCP.
 */

import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import { PATHS } from '#src/contract/wire/paths.ts';
import type { OpenApiDocument } from '#src/http/openapi/document.ts';
import { FORM_PLACES, PAGE_BODIES } from './page-bodies.ts';
import { asSchema, type Schema } from './schema-values.ts';

/** A request with a text in one place. */
export interface TextRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface TextPlace {
  readonly operation: string;
  readonly member: string;
  /** The longest text that the schema allows; undefined when only the request's size is limited. */
  readonly maxChars: number | undefined;
  /** The bytes that the request may have there. */
  readonly maxBytes: number;
  readonly request: (text: string) => TextRequest;
}

/** The things that exist on the server, by which requests get further than to `not_found`. */
export interface World {
  readonly document: OpenApiDocument;
  /** The values of parameters and members by their names. */
  readonly known: Readonly<Record<string, string>>;
  /** The id of a conversation, which stands in paths for `sessionId`. */
  readonly conversation: string;
  readonly auth: Readonly<Record<string, string>>;
  readonly page: { readonly token: string; readonly cookie: string; readonly id: string };
  /** The cookie of a browser's session, with its name. */
  readonly browserCookie: string;
  readonly tools: readonly { readonly name: string; readonly inputSchema: Schema }[];
}

const HEAD_BYTES = 16_384;
/** The room that the other headers need. */
const TEXT_IN_HEAD_BYTES = HEAD_BYTES - 1_000;
const MIB = 1024 * 1024;
const JSON_BYTES = 1 * MIB;
const LARGE_JSON_BYTES = 16 * MIB;
const MCP_BYTES = 4 * MIB;
const MAX_DEPTH = 9;
/** Headers that the server reads of every request. They are tried on the operations in `FOR_HEADERS`. */
const COMMON_HEADERS = [
  ...[
    'authorization',
    'service-workspace-id',
    'accept',
    'accept-encoding',
    'content-type',
    'content-encoding',
  ],
  ...['cookie', 'host', 'idempotency-key', 'if-match', 'if-none-match', 'origin', 'range', 'sec-fetch-site'],
  ...['traceparent', 'tracestate', 'transfer-encoding', 'user-agent', 'x-forwarded-for', 'x-forwarded-proto'],
  ...['x-request-id', 'x-any'],
];
const FOR_HEADERS = new Set(['listNotebooks', 'getNotebook', 'createNotebook', 'getHomePage', 'callMcp']);
/** Operations that would close or delete a resource that other requests need. They are sent to ids that do not exist. */
const DESTRUCTIVE =
  /^(delete|close|remove|revoke|hibernate|handOver|restart|cancelRuns$|setWorkspaceLimits|changeMember|changeNode|signOut)/;
/** Operations whose every success creates something that costs the server memory. Their bodies and paths are tried, their headers are not. */
const COSTLY = new Set(['addKey', 'rotateKeys', 'confirmClock']);
/** Operations with bodies of up to 16 MiB. */
const LARGE = new Set([
  ...['createNotebook', 'updateNotebook', 'importNotebook', 'submitExecution', 'changeCells', 'putFile'],
  ...['setUiValues', 'callFunction', 'completeCode', 'executeCode', 'submitPrompt', 'sendFromNotebookPage'],
]);

/** Returns all places, in an order that depends on nothing else. */
export function textPlaces(world: World): readonly TextPlace[] {
  const places: TextPlace[] = [];
  for (const [id, spec] of Object.entries(OPERATIONS)) places.push(...placesOfOperation(world, id, spec));
  places.push(...placesOfPage(world), ...placesOfTools(world));
  return places;
}

type Spec = (typeof OPERATIONS)[keyof typeof OPERATIONS];

/** Returns a text as it stands in an address. An address cannot have half a surrogate pair, so it gets its three bytes. */
function escaped(text: string): string {
  return text.replace(/[^A-Za-z0-9._~-]+/g, (piece) =>
    [...bytesOf(piece)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join(''),
  );
}

/** Returns a text with the characters only escaped that would end an address. */
function nearlyRaw(text: string): string {
  return text.replace(/[^\x21-\x7e]|[?#]/g, (one) => escaped(one));
}

function bytesOf(text: string): Buffer {
  if (text.isWellFormed()) return Buffer.from(text);
  const pieces: Buffer[] = [];
  for (const one of text) {
    const unit = one.charCodeAt(0);
    pieces.push(
      one.isWellFormed()
        ? Buffer.from(one)
        : Buffer.from([0xe0 | (unit >> 12), 0x80 | ((unit >> 6) & 63), 0x80 | (unit & 63)]),
    );
  }
  return Buffer.concat(pieces);
}

/** Returns a text as a header can have it: its bytes, without those that would end the line. */
function inHeader(text: string): string {
  const isAllowed = (byte: number) => byte === 9 || (byte >= 32 && byte !== 127);
  return Buffer.from(bytesOf(text).filter(isAllowed)).toString('latin1');
}

function placesOfOperation(world: World, id: string, spec: Spec): TextPlace[] {
  const { method, path } = spec;
  const isConversation = path.includes('/agent-sessions/');
  const isDestructive = DESTRUCTIVE.test(id);
  const valueFor = (name: string) =>
    isDestructive
      ? `${name}_0`
      : name === 'sessionId' && isConversation
        ? world.conversation
        : (world.known[name] ?? 'x');
  const pathWith = (name?: string, text = '') =>
    path.replace(/:(\w+)\*?/g, (_, one: string) => (one === name ? text : escaped(valueFor(one))));
  const own = headersOf(world, spec);
  const common = { ...world.auth, ...own };
  const schema = bodySchemaOf(world, id, spec);
  const resolve = resolver(world.document);
  const sample = schema === undefined ? undefined : JSON.stringify(minimal(schema, resolve, world.known));
  const base: TextRequest = {
    method,
    path: pathWith(),
    headers: { ...common, ...(sample === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(sample === undefined ? {} : { body: sample }),
  };
  const places: TextPlace[] = [];
  const add = (
    member: string,
    maxChars: number | undefined,
    maxBytes: number,
    request: TextPlace['request'],
  ) => places.push({ operation: id, member, maxChars, maxBytes, request });
  for (const [, name = ''] of path.matchAll(/:(\w+)/g)) {
    add(`path.${name}`, undefined, TEXT_IN_HEAD_BYTES, (text) => ({
      ...base,
      path: pathWith(name, escaped(text)),
    }));
    add(`path.${name} as it is`, undefined, TEXT_IN_HEAD_BYTES, (text) => ({
      ...base,
      path: pathWith(name, nearlyRaw(text)),
    }));
  }
  const query = 'query' in spec ? asSchema(asSchema(spec.query).properties) : {};
  const needed = ('query' in spec ? asSchema(spec.query).required : undefined) ?? [];
  const rest = (besides: string) =>
    (needed as readonly string[])
      .filter((name) => name !== besides)
      .map((name) => `&${name}=${escaped(valueFor(name))}`)
      .join('');
  for (const [name, member] of Object.entries(query))
    add(`query.${name}`, maxLengthOf(asSchema(member)), TEXT_IN_HEAD_BYTES, (text) => ({
      ...base,
      path: `${pathWith()}?${name}=${escaped(text)}${rest(name)}`,
    }));
  add('query', undefined, TEXT_IN_HEAD_BYTES, (text) => ({
    ...base,
    path: `${pathWith()}?${nearlyRaw(text)}`,
  }));
  if (!COSTLY.has(id)) {
    const named = 'headers' in spec ? Object.keys(spec.headers as object) : [];
    const headers = new Set(FOR_HEADERS.has(id) ? [...named, ...COMMON_HEADERS] : named);
    for (const name of headers)
      add(`header.${name}`, undefined, TEXT_IN_HEAD_BYTES, (text) => ({
        ...base,
        headers: { ...base.headers, [name]: inHeader(text) },
      }));
    if (headers.has('cookie'))
      add('cookie', undefined, TEXT_IN_HEAD_BYTES, (text) => ({
        ...base,
        headers: {
          ...own,
          host: 'localhost:1',
          cookie: `troupe-session-1=${inHeader(text)}; troupe-sign-in-1=${inHeader(text)}`,
        },
      }));
  }
  const maxBytes = LARGE.has(id) ? LARGE_JSON_BYTES : JSON_BYTES;
  if ('takesBytes' in spec && id !== 'uploadFromNotebookPage')
    add('body', undefined, LARGE_JSON_BYTES, (text) => ({ ...base, body: text }));
  if (schema !== undefined) {
    const json = { ...base.headers, 'content-type': 'application/json' };
    add('body as it is', undefined, maxBytes, (text) => ({ ...base, headers: json, body: text }));
    for (const { name, maxChars, make } of placesIn(schema, resolve, world.known))
      add(`body${name}`, maxChars, maxBytes, (text) => ({
        ...base,
        headers: json,
        body: JSON.stringify(make(text)),
      }));
  }
  return places;
}

/** Returns the headers without which an operation refuses a request before it looks further. */
function headersOf(world: World, spec: Spec): Record<string, string> {
  const names = 'headers' in spec ? Object.keys(spec.headers as object) : [];
  const { known, page } = world;
  if (spec.path.startsWith('/n/'))
    return { authorization: `Bearer ${page.token}`, 'marimo-session-id': page.id, cookie: page.cookie };
  if (/^\/(sign-|$)/.test(spec.path)) return { cookie: world.browserCookie, 'sec-fetch-site': 'same-origin' };
  return names.includes('service-session-id') ? { 'service-session-id': known.notebookId! } : {};
}

function bodySchemaOf({ document }: World, id: string, spec: Spec): Schema | undefined {
  if (!('body' in spec)) return undefined;
  for (const methods of Object.values(document.paths))
    for (const one of Object.values(methods))
      if (one.operationId === id) {
        const content = asSchema(asSchema(one.requestBody).content);
        const found = asSchema(content['application/json']).schema;
        if (found !== undefined) return asSchema(found);
      }
  return asSchema(spec.body);
}

type Resolve = (schema: Schema) => Schema;

function resolver(document: OpenApiDocument): Resolve {
  return (schema) => {
    if (typeof schema.$ref !== 'string') return schema;
    return schema.$ref
      .slice(2)
      .split('/')
      .reduce((at, name) => asSchema(at[name]), asSchema(document));
  };
}

function maxLengthOf(schema: Schema): number | undefined {
  if (typeof schema.maxLength === 'number') return schema.maxLength;
  for (const one of choices(schema)) {
    const found = maxLengthOf(one);
    if (found !== undefined) return found;
  }
  return undefined;
}

function choices(schema: Schema): Schema[] {
  return [schema.anyOf, schema.oneOf].flatMap((list) => (Array.isArray(list) ? list.map(asSchema) : []));
}

type Known = World['known'];

/** Returns the smallest value for a schema, with ids of things that exist. */
function minimal(given: Schema, resolve: Resolve, known: Known, name = '', depth = 0): unknown {
  const schema = resolve(given);
  if (depth > MAX_DEPTH) return null;
  if ('const' in schema) return schema.const;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  const [first] = choices(schema);
  if (first !== undefined) return minimal(first, resolve, known, name, depth + 1);
  if (Array.isArray(schema.allOf))
    return Object.assign(
      {},
      ...schema.allOf.map((one) => minimal(asSchema(one), resolve, known, name, depth + 1)),
    );
  if (known[name] !== undefined && schema.type === 'string') return known[name];
  if (Array.isArray(schema.examples) && schema.examples.length > 0 && schema.type !== 'object')
    return schema.examples[0];
  switch (schema.type) {
    case 'object': {
      const needed = Array.isArray(schema.required) ? (schema.required as string[]) : [];
      const properties = asSchema(schema.properties);
      return Object.fromEntries(
        needed.map((one) => [one, minimal(asSchema(properties[one]), resolve, known, one, depth + 1)]),
      );
    }
    case 'array':
      return Number(schema.minItems ?? 0) > 0
        ? [minimal(asSchema(schema.items), resolve, known, name.replace(/s$/, ''), depth + 1)]
        : [];
    case 'integer':
    case 'number':
      return schema.minimum ?? 1;
    case 'boolean':
      return false;
    case 'null':
      return null;
    default:
      return 'x';
  }
}

interface InnerPlace {
  readonly name: string;
  readonly maxChars: number | undefined;
  readonly make: (text: string) => unknown;
}

/** Returns the places in a value: texts, names of members, and lists of many small texts. */
function placesIn(given: Schema, resolve: Resolve, known: Known, name = '', depth = 0): InnerPlace[] {
  const schema = resolve(given);
  if (depth > MAX_DEPTH) return [];
  const inner = (one: unknown, called: string) => placesIn(asSchema(one), resolve, known, called, depth + 1);
  const all = choices(schema).flatMap((one) => inner(one, name));
  if (Array.isArray(schema.allOf)) all.push(...schema.allOf.flatMap((one) => inner(one, name)));
  if ('const' in schema) return all;
  const isAny = Object.keys(schema).every((key) => /^(description|title|\$id|default|examples)$/.test(key));
  const types: readonly unknown[] = Array.isArray(schema.type) ? schema.type : [schema.type];
  if (types.includes('string') || isAny || Array.isArray(schema.enum))
    all.push({ name: '', maxChars: maxLengthOf(schema), make: (text) => text });
  if (isAny)
    all.push(
      { name: '{name}', maxChars: undefined, make: (text) => ({ [text]: 1 }) },
      { name: '[many]', maxChars: undefined, make: manyOf },
    );
  if (types.includes('array')) {
    const limit = Number(schema.maxItems ?? 250_000);
    for (const place of inner(schema.items, name.replace(/s$/, ''))) {
      all.push({ ...place, name: `[]${place.name}`, make: (text) => [place.make(text)] });
      if (depth < 4)
        all.push({
          ...place,
          name: `[many]${place.name}`,
          maxChars: undefined,
          make: (text) => manyOf(text, limit).map((piece) => place.make(piece)),
        });
    }
  }
  if (types.includes('object') || schema.properties !== undefined) {
    const properties = asSchema(schema.properties);
    const base = Object(minimal(schema, resolve, known, name, depth)) as Record<string, unknown>;
    for (const [one, member] of Object.entries(properties))
      for (const place of inner(member, one))
        all.push({
          ...place,
          name: `.${one}${place.name}`,
          make: (text) => ({ ...base, [one]: place.make(text) }),
        });
    all.push({ name: '{name}', maxChars: undefined, make: (text) => ({ ...base, [text]: 'x' }) });
    const more = schema.additionalProperties;
    if (more !== false && more !== undefined)
      for (const place of inner(more, name))
        all.push({
          ...place,
          name: `.any${place.name}`,
          make: (text) => ({ ...base, any: place.make(text) }),
        });
  }
  return all;
}

/** Returns a text in pieces, at most as many as a request may have values. */
function manyOf(text: string, limit = 250_000): string[] {
  const most = Math.min(limit, 60_000);
  const length = Math.max(1, Math.ceil(text.length / most));
  const pieces: string[] = [];
  for (let at = 0; at < text.length && pieces.length < most; at += length)
    pieces.push(text.slice(at, at + length));
  return pieces;
}

/** Returns the places in an example: each text in it, and the names of its members. */
function placesInExample(example: unknown, depth = 0): InnerPlace[] {
  if (typeof example === 'string') return [{ name: '', maxChars: undefined, make: (text) => text }];
  if (Array.isArray(example)) {
    const [first] = example as unknown[];
    return [
      ...placesInExample(first, depth + 1).map((place) => ({
        ...place,
        name: `[]${place.name}`,
        make: (text: string) => [place.make(text)],
      })),
      ...placesInExample(first, depth + 1).map((place) => ({
        ...place,
        name: `[many]${place.name}`,
        make: (text: string) => manyOf(text, 10_000).map((piece) => place.make(piece)),
      })),
    ];
  }
  if (typeof example !== 'object' || example === null) return [];
  const places = Object.entries(example).flatMap(([name, member]) =>
    placesInExample(member, depth + 1).map((place) => ({
      ...place,
      name: `.${name}${place.name}`,
      make: (text: string) => ({ ...example, [name]: place.make(text) }),
    })),
  );
  return [...places, { name: '{name}', maxChars: undefined, make: (text) => ({ ...example, [text]: 'x' }) }];
}

function placesOfPage(world: World): TextPlace[] {
  const { page, known } = world;
  const root = PATHS.getNotebookPage.replace('GET ', '').replace(':notebookId', known.notebookId!);
  const headers = {
    authorization: `Bearer ${page.token}`,
    'marimo-session-id': page.id,
    'content-type': 'application/json',
  };
  const places = Object.entries(PAGE_BODIES).flatMap(([path, examples]) =>
    examples.flatMap((example) =>
      placesInExample(example).map(
        ({ name, make }): TextPlace => ({
          operation: `page ${path}`,
          member: `body${name}`,
          maxChars: undefined,
          maxBytes: path.startsWith('api/files')
            ? 4 * MIB
            : path.startsWith('api/packages')
              ? MIB
              : LARGE_JSON_BYTES,
          request: (text) => ({
            method: 'POST',
            path: `${root}${path}`,
            headers,
            body: JSON.stringify(make(text)),
          }),
        }),
      ),
    ),
  );
  const form = FORM_PLACES.map(
    ([member, make]): TextPlace => ({
      operation: 'page api/files/create',
      member: `form.${member}`,
      maxChars: undefined,
      maxBytes: LARGE_JSON_BYTES,
      request: (text) => ({
        method: 'POST',
        path: `${root}api/files/create`,
        headers: { ...headers, 'content-type': 'multipart/form-data; boundary=cut' },
        body: make(text),
      }),
    }),
  );
  const boundary: TextPlace = {
    operation: 'page api/files/create',
    member: 'header.content-type boundary',
    maxChars: 70,
    maxBytes: TEXT_IN_HEAD_BYTES,
    request: (text) => ({
      method: 'POST',
      path: `${root}api/files/create`,
      headers: { ...headers, 'content-type': `multipart/form-data; boundary=${inHeader(text)}` },
      body: `--${text}\r\n`,
    }),
  };
  return [...places, ...form, boundary];
}

const MCP_VERSION = '2026-07-28';

function placesOfTools({ tools, known, auth, document }: World): TextPlace[] {
  const resolve = resolver(document);
  const message = (method: string, params: object) => ({
    jsonrpc: '2.0',
    id: 1,
    method,
    params: {
      ...params,
      _meta: {
        'io.modelcontextprotocol/protocolVersion': MCP_VERSION,
        'io.modelcontextprotocol/clientInfo': { name: 'fuzz', version: '1' },
        'io.modelcontextprotocol/clientCapabilities': {},
      },
    },
  });
  const place = (operation: string, method: string, called: string, inner: InnerPlace): TextPlace => ({
    operation,
    member: `arguments${inner.name}`,
    maxChars: inner.maxChars,
    maxBytes: MCP_BYTES,
    request: (text) => ({
      method: 'POST',
      path: '/mcp',
      headers: {
        ...auth,
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
        'mcp-protocol-version': MCP_VERSION,
        'mcp-method': method,
        'mcp-name': called,
      },
      body: JSON.stringify(message(method, inner.make(text) as object)),
    }),
  });
  const calls = tools.flatMap(({ name, inputSchema }) =>
    placesIn(inputSchema, resolve, known).map((inner) =>
      place(`mcp ${name}`, 'tools/call', name, {
        ...inner,
        make: (text) => ({ name, arguments: inner.make(text) }),
      }),
    ),
  );
  const others = (
    [
      ['tools/call', 'name', (text) => ({ name: text, arguments: {} })],
      ['resources/read', 'uri', (text) => ({ uri: text })],
      ['resources/read', 'uri after its scheme', (text) => ({ uri: `troupe://notebooks/${text}` })],
      ['tools/list', 'cursor', (text) => ({ cursor: text })],
      ['tools/list', '_meta', (text) => ({ any: { [text]: text } })],
    ] as readonly (readonly [string, string, (text: string) => object])[]
  ).map(([method, name, make]) =>
    place(`mcp ${method}`, method, 'x', { name: ` ${name}`, maxChars: undefined, make }),
  );
  const initialize: TextPlace = {
    operation: 'mcp initialize',
    member: 'clientInfo.name',
    maxChars: undefined,
    maxBytes: MCP_BYTES,
    request: (text) => ({
      method: 'POST',
      path: '/mcp',
      headers: { ...auth, accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'initialize',
        params: {
          protocolVersion: '2025-06-18',
          capabilities: {},
          clientInfo: { name: text, version: text },
        },
      }),
    }),
  };
  return [...calls, ...others, initialize];
}
