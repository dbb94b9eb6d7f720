/** Hooks at which other programs fire a job: with a token or a signature, once for each id, with the body as data. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { Webhook } from 'standardwebhooks';
import type { Occurrence } from '#src/contract/wire/job.ts';
import { addMember } from '#test/support/members.ts';
import { eventually } from '#test/support/processes.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { hooksIn, jobs, notebooks, runs } = server.client;

const READS_PAYLOAD = `import marimo as mo
payload = mo.cli_args().get("payload")
payload`;

test('a program with the token fires the job, and the body reaches the notebook as text', async () => {
  const { jobId, url, secret, id } = await hookOf(READS_PAYLOAD);
  const body = '{"ref": "main; rm -rf /", "n": [1, "$(id)"]}';
  const answer = await post(url, { authorization: `Bearer ${secret}` }, body);
  assert.equal(answer.status, 202);
  const fired = (await answer.json()) as Occurrence;
  const payload = JSON.stringify(JSON.parse(body));
  assert.deepEqual([fired.trigger, fired.hookInId, fired.arguments], ['hook', id, [`--payload=${payload}`]]);
  const run = await runs.get((await ended(jobId, fired.id)).runId ?? '');
  assert.equal(run.status, 'completed');
  assert.match(JSON.stringify(run.output), /main; rm -rf/);
});

test('a signed request fires the job, and the same id is the same firing', async () => {
  const { jobId, url, secret } = await hookOf('1');
  const headers = signed(secret, 'msg_1', new Date(), '{"a":1}');
  const [first, second] = [await post(url, headers, '{"a":1}'), await post(url, headers, '{"a":1}')];
  assert.deepEqual([first.status, second.status], [202, 202]);
  const { id } = (await first.json()) as Occurrence;
  assert.equal(((await second.json()) as Occurrence).id, id);
  await ended(jobId, id);
  const third = await post(url, headers, '{"a":1}');
  assert.equal(((await third.json()) as Occurrence).id, id);
  assert.equal((await jobs.occurrences(jobId)).items.length, 1);
});

test('an Idempotency-Key makes a request with a token the same firing as well', async () => {
  const { jobId, url, secret } = await hookOf('1');
  const headers = { authorization: `Bearer ${secret}`, 'idempotency-key': 'build-7' };
  const ids = [];
  for (let i = 0; i < 2; i++) ids.push(((await (await post(url, headers, '')).json()) as Occurrence).id);
  assert.equal(new Set(ids).size, 1);
  await ended(jobId, ids[0] ?? '');
});

test('an unknown hook, a wrong secret, a changed body and an old signature get the same answer', async () => {
  const { url, secret } = await hookOf('1');
  const now = Date.now();
  const good = signed(secret, 'msg_2', new Date(now), '{}');
  const old = signed(secret, 'msg_3', new Date(now - 301_000), '{}');
  const early = signed(secret, 'msg_4', new Date(now + 330_000), '{}');
  const answers = [
    await post(url.replace(/hin_.*$/, 'hin_00000000000000000000000000'), good, '{}'),
    await post(url, { authorization: 'Bearer whsec_AAAA' }, '{}'),
    await post(url, {}, '{}'),
    await post(url, good, '{"changed": true}'),
    await post(url, old, '{}'),
    await post(url, early, '{}'),
    await post(
      url,
      { ...good, 'webhook-signature': `${'v1,AAAA '.repeat(10)}${good['webhook-signature']}` },
      '{}',
    ),
  ];
  const seen = await Promise.all(
    answers.map(async (answer) => {
      const { requestId: _, instance: __, ...problem } = (await answer.json()) as Record<string, unknown>;
      return JSON.stringify([answer.status, problem]);
    }),
  );
  assert.equal(new Set(seen).size, 1, seen.join('\n'));
  assert.match(seen[0] ?? '', /^\[401,.*unauthenticated/);
});

test('a body that is not JSON is refused, and one of 8,000 characters is the longest', async () => {
  const { jobId, url, secret } = await hookOf('1');
  const token = { authorization: `Bearer ${secret}` };
  assert.equal((await post(url, token, '{')).status, 400);
  assert.equal((await post(url, token, JSON.stringify('x'.repeat(7999)))).status, 413);
  const longest = await post(url, token, JSON.stringify('x'.repeat(7998)));
  assert.equal(longest.status, 202);
  await ended(jobId, ((await longest.json()) as Occurrence).id);
});

test('a job in progress refuses a further request with 409', async () => {
  const { jobId, url, secret } = await hookOf('import time; time.sleep(600)');
  const token = { authorization: `Bearer ${secret}` };
  const { id } = (await (await post(url, token, '')).json()) as Occurrence;
  const refused = await post(url, token, '');
  assert.equal(refused.status, 409);
  assert.equal(((await refused.json()) as { code: string }).code, 'job_running');
  const runId = await eventually(
    'the run has begun',
    async () => (await occurrenceOf(jobId, id)).runId ?? undefined,
  );
  await runs.cancel(runId);
  await ended(jobId, id);
});

test('a job has at most ten hooks, which only those who control the job see, and which end with it', async () => {
  const { jobId, url, secret, id } = await hookOf('1');
  for (let count = 1; count < 10; count++) await hooksIn.create(jobId);
  assert.equal(await refusalOf(hooksIn.create(jobId)), '429 quota_exceeded');
  const bob = await addMember(server, 'bob-of-hooks-in', 'editor');
  assert.equal(await refusalOf(bob.client.hooksIn.list(jobId)), '403 role_too_low');
  const { items } = await hooksIn.list(jobId);
  assert.equal(items.length, 10);
  assert(!JSON.stringify(items).includes(secret.slice(6, 26)));
  await hooksIn.delete(jobId, items[9]?.id ?? '');
  assert.equal(await refusalOf(hooksIn.delete(jobId, items[9]?.id ?? '')), '404 not_found');
  assert.equal(items[0]?.id, id);
  await jobs.delete(jobId);
  assert.equal((await post(url, { authorization: `Bearer ${secret}` }, '')).status, 401);
});

test('a hook fires no job any more once the member who made it has left, although an owner has taken the job over', async () => {
  const carol = await addMember(server, 'carol-of-hooks-in', 'editor');
  const { id: notebookId } = await notebooks.create({
    serialization: { cells: [{ cell_id: 'c', code: '1' }] },
  });
  const target = { notebookId };
  const { id, updatedAt } = await carol.client.jobs.create({ target, schedule: { cron: '0 7 1 1 *' } });
  const { url, secret } = await carol.client.hooksIn.create(id);
  await jobs.update(id, { expectedUpdatedAt: updatedAt, takeOver: true });
  await server.client.members.delete('carol-of-hooks-in');
  const refused = await post(url, { authorization: `Bearer ${secret}` }, '');
  assert.equal(refused.status, 403);
  assert.match(
    ((await refused.json()) as { detail: string }).detail,
    /^carol-of-hooks-in, who made the hook/,
  );
  assert.deepEqual((await jobs.occurrences(id)).items, []);
});

function post(url: string, headers: Readonly<Record<string, string>>, body: string): Promise<Response> {
  return fetch(new URL(url, server.baseUrl), { method: 'POST', headers, ...(body !== '' && { body }) });
}

function signed(secret: string, id: string, at: Date, body: string) {
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign(id, at, body),
  };
}

async function hookOf(code: string) {
  const { id: notebookId } = await notebooks.create({ serialization: { cells: [{ cell_id: 'c', code }] } });
  const job = await jobs.create({ target: { notebookId }, schedule: { cron: '0 7 1 1 *' }, retries: 0 });
  return hooksIn.create(job.id, 'CI');
}

async function occurrenceOf(jobId: string, id: string): Promise<Occurrence> {
  const found = (await jobs.occurrences(jobId)).items.find((one) => one.id === id);
  assert(found !== undefined);
  return found;
}

async function ended(jobId: string, id: string): Promise<Occurrence> {
  return eventually('the occurrence is over', async () => {
    const occurrence = await occurrenceOf(jobId, id);
    return occurrence.finishedAt === null ? undefined : occurrence;
  });
}
