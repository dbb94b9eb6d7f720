// tier: whole, because it makes random or hostile input
/**
 * Requests made from the OpenAPI document and a seed: none returns 500 or a response that the
 * document does not allow.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { OpenApiDocument } from '#src/http/openapi/document.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { SeededRandom } from '#test/support/random.ts';
import { startServer, type TestServer } from '#test/support/server-fixture.ts';
import { mutated, odd } from './odd-values.ts';
import { asSchema, type Schema, sampleOf } from './schema-values.ts';

const SEED = Number(process.env.FUZZ_SEED ?? 20_261_121);
const REQUESTS = Number(process.env.FUZZ_REQUESTS ?? 1500);
/** A seed goes on up to so many times as many requests, until a run was accepted and a conflict was refused. */
const MAX_TIMES = 4;

interface Operation {
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly Schema[];
  readonly body: Schema | undefined;
}

function operationsOf(document: OpenApiDocument): Operation[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(asSchema(methods)).flatMap(([method, described]) => {
      const operation = asSchema(described);
      if (operation.responses === undefined || path.endsWith('/events')) return [];
      const content = asSchema(asSchema(operation.requestBody).content);
      const body = content['application/json'];
      return [
        {
          method: method.toUpperCase(),
          path,
          parameters: Array.isArray(operation.parameters) ? operation.parameters.map(asSchema) : [],
          body: body === undefined ? undefined : asSchema(asSchema(body).schema),
        },
      ];
    }),
  );
}

/** The newest few ids of each kind, so that not every request returns 404. */
class KnownIds {
  readonly #byKind = new Map<string, string[]>([['user', ['guest', 'nobody']]]);
  readonly #spared: string;

  /** `spared` is never returned, because later requests need that object. */
  constructor(spared: string) {
    this.#spared = spared;
  }

  /** Records every id in a response. */
  harvest(text: string): void {
    for (const [id, kind] of text.matchAll(/\b(nb|env|run|conv|tok|ws|ds)_[0-9a-z]{20,}/g)) {
      const kept = this.#byKind.get(kind!) ?? [];
      if (!kept.includes(id) && id !== this.#spared) this.#byKind.set(kind!, [...kept, id].slice(-8));
    }
  }

  /** Returns, in most cases, an id that fits a member or parameter of this name. */
  pick(name: string, random: SeededRandom): string {
    const kind = /^(nb|env|run|conv|tok|ws|ds)_/.exec(name)?.[1] ?? KIND_OF[name];
    const fitting = random.is(0.9) && kind !== undefined ? this.#byKind.get(kind) : undefined;
    return random.pick(fitting ?? [...this.#byKind.values()].flat());
  }
}

const KIND_OF: Readonly<Record<string, string>> = {
  notebookId: 'nb',
  sessionId: 'nb',
  notebookSessionId: 'nb',
  'Service-Session-Id': 'nb',
  environmentId: 'env',
  runId: 'run',
  tokenId: 'tok',
  workspaceId: 'ws',
  userId: 'user',
};

async function inhabit(server: TestServer): Promise<void> {
  const { client } = server;
  const notebook = await openNotebook(server, { a: '1' });
  await notebook.run(['a']);
  await client.members.create({ userId: 'guest', role: 'viewer' });
}

test(`${REQUESTS} requests of seed ${SEED} get responses that the document allows`, async (t) => {
  const server = await startServer(t, {
    TROUPE_EGRESS_ALLOW: 'none',
    TROUPE_MAX_SESSIONS: '3',
  });
  await inhabit(server);
  const { items } = await server.client.accessTokens.list();
  const ids = new KnownIds(items[0]!.id);
  for (const path of ['notebooks', 'workspaces'])
    ids.harvest((await server.request('GET', `/api/v3/${path}`)).text);
  const random = new SeededRandom(SEED);
  const { body: document } = await server.request('GET', '/api/v3/openapi.json');
  const operations = operationsOf(document as OpenApiDocument);
  const resolve = (ref: string) =>
    ref
      .slice(2)
      .split('/')
      .reduce(
        (at, name) => asSchema(at[name.replaceAll('~1', '/').replaceAll('~0', '~')]),
        asSchema(document),
      );
  const make = (schema: unknown) => sampleOf(asSchema(schema), random, resolve);
  const statuses = new Map<number, number>();
  const getsEverywhere = () => statuses.has(202) && statuses.has(409);
  for (let count = 0; count < REQUESTS || (count < MAX_TIMES * REQUESTS && !getsEverywhere()); count++) {
    const { method, path, parameters, body } = random.pick(operations);
    if (method === 'DELETE' && random.is(0.8)) continue;
    const place = (name: string) => (random.is(0.9) ? ids.pick(name, random) : String(odd(random)) || name);
    const target = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(safe(place(name))));
    const query = new URLSearchParams();
    const headers: Record<string, string> = {};
    for (const { in: where, name, schema } of parameters) {
      if (random.is(0.5)) continue;
      const value = safe(String(random.is(0.8) ? make(schema) : odd(random)));
      if (where === 'query') query.append(String(name), value);
      else if (where === 'header')
        headers[String(name)] = encodeURI(
          random.is(0.9) && KIND_OF[String(name)] !== undefined ? ids.pick(String(name), random) : value,
        );
    }
    delete headers.Authorization;
    delete headers['Service-Workspace-Id'];
    const sent = body === undefined ? undefined : JSON.stringify(withIds(mutated(random, make(body), 0.05)));
    const answer = await server.request(method, `${target}${query.size > 0 ? `?${query}` : ''}`, {
      headers,
      ...(sent === undefined ? {} : { body: random.is(0.95) ? sent : sent.slice(0, -1) }),
    });
    assert.notEqual(answer.status, 500, `${method} ${target} ${sent}`);
    if (answer.status < 300) ids.harvest(answer.text);
    statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
  }
  t.diagnostic(JSON.stringify(Object.fromEntries([...statuses].sort())));
  assert.ok(getsEverywhere(), 'the requests get everywhere');

  /** Replaces, in most cases, values that name a resource by ids of existing ones. */
  function withIds(value: unknown): unknown {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    const members = Object.entries(value).map(([name, member]) => {
      return [name, KIND_OF[name] !== undefined && random.is(0.8) ? ids.pick(name, random) : member];
    });
    return Object.fromEntries(members);
  }
});

/** Replaces halves of surrogate pairs, which cannot be encoded as UTF-8. */
function safe(text: string): string {
  return text.replace(/\p{Surrogate}/gu, '');
}
