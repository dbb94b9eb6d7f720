/** The fuzz of databases against a whole server, in which another workspace goes on working. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import type { SeededRandom } from '#test/support/random.ts';
import { type Owner, startServer } from '#test/support/server-fixture.ts';
import { askThroughNotebook } from './ask-statements.ts';
import { CANARY, fuzzDatabases, type Outcomes } from './engine-fuzz.ts';

export interface ServerFuzz {
  readonly random: SeededRandom;
  readonly databases: number;
}

/**
 * Returns how often each kind of outcome was seen. Rejects when a statement reaches data outside of its database, when
 * the server or the kernel stops answering, and when the server logs an error.
 */
export async function fuzzThroughServer(owner: Owner, { random, databases }: ServerFuzz): Promise<Outcomes> {
  const server = await startServer(owner);
  const canary = join(server.dataDir, 'canary');
  writeFileSync(canary, CANARY);
  const bystander = await openNotebook(server, { count: 'import itertools\ncounter = itertools.count()' });
  assert.equal((await bystander.run(['count'])).status, 'completed');
  const ask = await askThroughNotebook(server);
  const before = readdirSync(server.dataDir).sort();
  const outcomes = await fuzzDatabases({
    folder: server.filesDir,
    canary,
    random,
    databases,
    statements: 8,
    ask,
  });
  assert.deepEqual(readdirSync(server.dataDir).sort(), before);
  assert.equal(readFileSync(canary, 'utf8'), CANARY);
  const { output } = await server.client.code.execute(bystander.id, 'next(counter)');
  assert.match(JSON.stringify(output), /0/, 'the other kernel has lost its variables');
  return outcomes;
}
