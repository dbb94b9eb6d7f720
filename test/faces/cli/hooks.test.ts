/** `troupe hooks`: hooks as people use them in a shell, with a receiver on a real socket. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import type { CreatedHook, CreatedHookIn, Delivery, Hook, HookIn } from '#src/contract/wire/hook.ts';
import { HOOK_EVENTS } from '#src/contract/wire/hook.ts';
import { addMember } from '#test/support/members.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { hookReceiver, TAKEN } from '#test/support/stand-ins/hook-receiver.ts';
import { marimoFile } from './notebook-file.ts';
import { Shell } from './troupe-process.ts';

const server = await startServer(test);
const shell = new Shell(test, server);
const { json, text, troupe } = shell;
const { hooks, jobs } = server.client;

const YEARLY = ['--cron', '@yearly', '--time-zone', 'UTC'];

test('hooks create prints the secret alone, says that it is not shown again, and no later command prints it', async (t) => {
  const receiver = await hookReceiver(t);
  const creation = shell.start(['hooks', 'create', receiver.url, '--events', 'run.failed']);
  const { exitCode, out, err } = await creation.ended;
  assert.equal(exitCode, 0, err);
  assert.match(out, /^whsec_[A-Za-z0-9+/]{43}=\n$/);
  const secret = out.trim();
  const [, id = ''] =
    /^(hook_\w+) sends run\.failed\. Its secret is not shown again\. Try it: troupe hooks test \1\n$/.exec(
      err,
    ) ?? [];
  assert.equal((await hooks.get(id)).url, receiver.url);
  await text(['hooks', 'test', id]);
  receiver.received[0]?.verify(secret);
  const later = [
    creation.commandLine,
    err,
    await text(['hooks', 'list']),
    JSON.stringify(await json<Hook[]>(['hooks', 'list'])),
    await text(['hooks', 'show', id]),
    JSON.stringify(await json<Hook>(['hooks', 'show', id])),
    JSON.stringify(await json<Delivery[]>(['hooks', 'deliveries', id])),
    JSON.stringify(server.log),
  ].join('\n');
  assert(!later.includes(secret.slice('whsec_'.length, 'whsec_'.length + 20)));
  await text(['hooks', 'delete', id]);
});

test('hooks create passes on events, filters, the name and the pause', async () => {
  const notebook = 'filtered.py';
  writeFileSync(join(shell.cwd, notebook), marimoFile({ one: '1' }));
  const job = await text(['jobs', 'create', notebook, ...YEARLY]);
  const hook = await json<CreatedHook>(
    [
      ['hooks', 'create', 'https://receiver.example/hook', '--events', 'run.failed, job.paused'],
      ['--events', 'run.failed', '--notebook', 'filtered', '--job', job],
      ['--metadata', 'team=sales', '--metadata', 'region=eu', '--name', 'On-call', '--paused'],
    ].flat(),
  );
  const { target } = await jobs.get(job);
  const notebookId = 'notebookId' in target ? target.notebookId : '';
  assert.deepEqual(
    [hook.events, hook.filter, hook.name, hook.paused],
    [
      ['run.failed', 'job.paused'],
      { notebookId, jobId: job, metadata: { team: 'sales', region: 'eu' } },
      'On-call',
      true,
    ],
  );
  assert.match(hook.secret, /^whsec_/);
  const shown = await text(['hooks', 'show', hook.id]);
  for (const fact of [
    /name +On-call/,
    /events +run\.failed, job\.paused/,
    new RegExp(`notebook +${notebookId}`),
    new RegExp(`job +${job}`),
    /metadata +team=sales/,
    /metadata +region=eu/,
    new RegExp(`status +paused by a person: troupe hooks resume ${hook.id}`),
    /waiting +0$/,
  ])
    assert.match(shown, fact);
  await text(['hooks', 'delete', hook.id]);
  await text(['jobs', 'delete', job]);
});

test('hooks change changes the named members alone, takes limits away, and never prints the secret', async () => {
  const job = await text(['jobs', 'create', 'filtered.py', ...YEARLY, '--name', 'Of the year']);
  const created = await json<CreatedHook>(
    [
      ['hooks', 'create', 'https://receiver.example/before', '--events', 'run.failed', '--name', 'Before'],
      ['--job', 'Of the year', '--metadata', 'team=sales', '--notebook', 'filtered'],
    ].flat(),
  );
  const { id, filter } = created;
  assert.equal(filter.jobId, job);
  const change = (...options: string[]) => json<Hook>(['hooks', 'change', id, ...options]);
  const known = ({ url, events, name, filter: limits }: Hook) => ({ url, events, name, filter: limits });
  const moved = await change('--url', 'https://receiver.example/after');
  assert.deepEqual(known(moved), { ...known(created), url: 'https://receiver.example/after' });
  const other = await change(
    '--events',
    'job.failed,job.paused',
    '--metadata',
    'region=eu',
    '--name',
    'After',
  );
  assert.deepEqual(known(other), {
    url: 'https://receiver.example/after',
    events: ['job.failed', 'job.paused'],
    name: 'After',
    filter: { ...filter, metadata: { region: 'eu' } },
  });
  const unlimited = await change('--no-notebook', '--no-metadata', '--no-name');
  assert.deepEqual([unlimited.name, unlimited.filter], [null, { jobId: job }]);
  assert.deepEqual((await change('--no-job')).filter, {});
  const shown = await text(['hooks', 'change', id, '--job', job]);
  assert.match(shown, new RegExp(`job +${job}`));
  assert(!shown.includes('whsec_'));
  assert.deepEqual(await troupe(['hooks', 'change', id]), {
    exitCode: 2,
    out: '',
    err: 'troupe: Name at least one option: there is nothing to change.\n',
  });
  await text(['hooks', 'delete', id]);
  await text(['jobs', 'delete', job]);
});

test('a hook of a job that does not exist is refused, because nobody would ever be told', async () => {
  const create = ['hooks', 'create', 'https://receiver.example/', '--events', 'job.failed', '--job'];
  const unknown = await troupe([...create, 'job_none']);
  assert.deepEqual([unknown.exitCode, unknown.out], [1, '']);
  assert.match(unknown.err, /\(not_found at \/api\/v3\/jobs\/job_none/);
  const unnamed = await troupe([...create, 'Sales of a year']);
  assert.deepEqual(
    [unnamed.exitCode, unnamed.err],
    [1, 'troupe: No job has the name Sales of a year: troupe jobs list shows the names and ids of jobs.\n'],
  );
});

test('the command line knows every event of the API', async () => {
  const events = HOOK_EVENTS.join(',');
  const hook = await json<Hook>(['hooks', 'create', 'https://receiver.example/', '--events', events]);
  assert.deepEqual(hook.events, [...HOOK_EVENTS]);
  await text(['hooks', 'delete', hook.id]);
});

test('a wrong address, an unknown event and a missing hook are refused in words', async () => {
  const create = (url: string, ...words: string[]) => troupe(['hooks', 'create', url, ...words]);
  const unknown = await create('https://receiver.example/', '--events', 'run.exploded');
  assert.equal(unknown.exitCode, 2);
  assert.match(unknown.err, /The events are: run\.completed, run\.failed, /);
  const none = await create('https://receiver.example/');
  assert.equal(none.exitCode, 2);
  assert.match(none.err, /--events/);
  const user = await create('https://ada:pass@receiver.example/', '--events', 'run.failed');
  assert.deepEqual([user.exitCode, user.out], [1, '']);
  assert.match(user.err, /must not contain a user or a password/);
  for (const url of ['receiver.example', 'ftp://receiver.example/'])
    assert.match(
      (await create(url, '--events', 'run.failed')).err,
      /\/url must be an address that begins with https:\/\/ or http:\/\//,
    );
  for (const words of [['show'], ['test'], ['rotate'], ['pause'], ['delete'], ['deliveries']]) {
    const missing = await troupe(['hooks', ...words, 'hook_none']);
    assert.equal(missing.exitCode, 1);
    assert.match(missing.err, /\(not_found/);
  }
});

test('hooks test says that the test has arrived, or why it has not and when it is sent again', async (t) => {
  const receiver = await hookReceiver(t);
  const { id } = await json<Hook>(['hooks', 'create', receiver.url, '--events', 'run.failed']);
  assert.match(await text(['hooks', 'test', id]), /^dlv_\w+ has arrived: the receiver answered 204\.$/);
  receiver.answer((response) => response.writeHead(500).end('out of order'));
  const failed = await troupe(['hooks', 'test', id]);
  assert.deepEqual([failed.exitCode, failed.out], [1, '']);
  assert.match(
    failed.err,
    /^dlv_\w+ has not arrived\. The receiver answered with the status 500\. The next attempt is at \d{4}-\S+Z\.\n$/,
  );
  assert.match(await text(['hooks', 'list']), /backing-off +1 /);
  receiver.answer(TAKEN);
  await eventually('the delivery has arrived', async () => (await hooks.get(id)).pending === 0);
  const delivery = await text(['hooks', 'test', id, '--detach']);
  await eventually('the test has arrived', () => receiver.received.at(-1)?.id === delivery);
  await eventually('nothing waits', async () => (await hooks.get(id)).pending === 0);

  const [, first] = (await json<Delivery[]>(['hooks', 'deliveries', id])).reverse();
  assert.deepEqual([first?.attempts, first?.status], [2, 'delivered']);
  const log = await text(['hooks', 'deliveries', id, '--limit', '2']);
  assert.match(
    log,
    new RegExp(
      `^ID +EVENT +QUEUED +STATUS +ATTEMPTS +ANSWER +NEXT +REASON\n${delivery} .* delivered +1 +204 .*\n${first?.id} .* 2 +204 .*$`,
    ),
  );
  assert.equal((await text(['hooks', 'show', id])).match(/hook\.test/g)?.length, 3);
  await text(['hooks', 'delete', id]);
});

test('a delivery that is replayed arrives again with its id', async (t) => {
  const receiver = await hookReceiver(t);
  const { id } = await json<Hook>(['hooks', 'create', receiver.url, '--events', 'run.failed']);
  const { id: first } = await json<Delivery>(['hooks', 'test', id]);
  const again = await json<Delivery>(['hooks', 'replay', id, first]);
  assert.deepEqual([again.id, again.status, again.attempts], [first, 'delivered', 2]);
  assert.deepEqual(
    receiver.received.map((message) => message.id),
    [first, first],
  );
  assert.equal((await troupe(['hooks', 'replay', id, 'dlv_none'])).exitCode, 1);
  await text(['hooks', 'delete', id]);
});

test('Ctrl-C ends the wait for a receiver that does not answer, and not the delivery', async (t) => {
  const receiver = await hookReceiver(t, () => undefined);
  const { id } = await json<Hook>(['hooks', 'create', receiver.url, '--events', 'run.failed']);
  const waiting = shell.start(['hooks', 'test', id]);
  await eventually('the request has arrived', () => receiver.received.length === 1);
  waiting.interrupt();
  assert.equal((await waiting.ended).exitCode, 130);
  assert.equal((await hooks.get(id)).pending, 1);
  await text(['hooks', 'delete', id]);
});

test('a receiver that is gone pauses its hook, and show says why and what to do', async (t) => {
  const receiver = await hookReceiver(t, (response) => response.writeHead(410).end());
  const { id } = await json<Hook>(['hooks', 'create', receiver.url, '--events', 'run.failed']);
  const gone = await troupe(['hooks', 'test', id]);
  assert.equal(gone.exitCode, 1);
  assert.match(gone.err, /has not arrived, and is not sent again\. The receiver answered 410 Gone/);
  assert.match(
    await text(['hooks', 'show', id]),
    new RegExp(
      `paused: The receiver answered 410 .*\nOnce the cause is removed: troupe hooks resume ${id}\n`,
    ),
  );
  const refused = await troupe(['hooks', 'test', id]);
  assert.equal(refused.exitCode, 1);
  assert.match(refused.err, /The hook is paused, so it sends nothing\./);
  receiver.answer(TAKEN);
  assert.equal(await text(['hooks', 'resume', id]), `${id} is idle.`);
  await text(['hooks', 'test', id]);
  assert.equal(await text(['hooks', 'pause', id]), `${id} is paused.`);
  await text(['hooks', 'delete', id]);
});

test('hooks rotate prints the new secret alone, and until when the one before signs', async (t) => {
  const receiver = await hookReceiver(t);
  const { id, secret } = await json<CreatedHook>(['hooks', 'create', receiver.url, '--events', 'run.failed']);
  const { exitCode, out, err } = await troupe(['hooks', 'rotate', id]);
  assert.equal(exitCode, 0, err);
  assert.match(out, /^whsec_\S+\n$/);
  assert.match(err, /which is not shown again\. The secret before signs, too, until \d{4}-\S+Z\.\n$/);
  await text(['hooks', 'test', id]);
  for (const valid of [secret, out.trim()]) receiver.received[0]?.verify(valid);
  assert.match(await text(['hooks', 'show', id]), /older secret +signs, too, until \d{4}-/);
  await text(['hooks', 'delete', id]);
});

test('a hook whose owner has left says who can do what', async (t) => {
  const receiver = await hookReceiver(t);
  const ada = await addMember(server, 'ada', 'editor');
  const create = ['hooks', 'create', receiver.url, '--events', 'run.failed'];
  const { id } = await json<Hook>(create, { env: { SERVICE_ACCESS_TOKEN: ada.token } });
  await text(['member', 'revoke', 'ada']);
  await text(['hooks', 'test', id, '--detach']);
  await eventually('the hook is paused', async () => (await hooks.get(id)).paused);
  assert.match(
    await text(['hooks', 'show', id]),
    new RegExp(`paused: The owner of the hook, ada, .*\n.*troupe hooks delete ${id}\n`),
  );
  await text(['hooks', 'delete', id]);
});

test('the URL and the secret of hooks in fire a job as they are printed, until the hook is deleted', async () => {
  writeFileSync(join(shell.cwd, 'fired.py'), marimoFile({ one: '1' }));
  const job = await text(['jobs', 'create', 'fired.py', ...YEARLY]);
  const { out, err } = await troupe(['hooks', 'in', 'create', job, '--name', 'CI']);
  const [, id = '', url = ''] =
    /^(hin_\w+) fires job_\w+: POST (http:\S+)\nIts secret is not/.exec(err) ?? [];
  const fire = async () => {
    const headers = { authorization: `Bearer ${out.trim()}` };
    return (await fetch(url, { method: 'POST', headers, body: '{"ref": "main"}' })).status;
  };
  assert.equal(await fire(), 202);
  await eventually('the run has ended', async () => (await jobs.get(job)).status === 'waiting');
  assert.match(await text(['jobs', 'history', job]), new RegExp(`GMT\\S* +${id} +completed `));
  const listed = await json<HookIn[]>(['hooks', 'in', 'list', job]);
  assert.deepEqual(
    listed.map((hook) => [hook.id, hook.name, hook.url]),
    [[id, 'CI', url]],
  );
  const table = await text(['hooks', 'in', 'list', job]);
  assert.match(table, new RegExp(`^ID +NAME +URL +BY +CREATED\n${id} +CI +http`));
  assert(!table.includes(out.trim()));
  const other = await json<CreatedHookIn>(['hooks', 'in', 'create', job]);
  assert.equal(
    await text(['hooks', 'in', 'delete', job, id, other.id]),
    `${id} is deleted.\n${other.id} is deleted.`,
  );
  assert.equal(await fire(), 401);
  assert.deepEqual(await json<HookIn[]>(['hooks', 'in', 'list', job]), []);
  assert.equal((await troupe(['hooks', 'in', 'delete', job, id])).exitCode, 1);
  await text(['jobs', 'delete', job]);
});

test('ids of hooks are completed, and the commands of a group below hooks too', async () => {
  const { id } = await json<Hook>(['hooks', 'create', 'https://receiver.example/', '--events', 'run.failed']);
  assert.equal(await text(['complete-ids', 'hook']), id);
  const script = await text(['completion', 'bash']);
  assert.match(script, /'hooks in delete'\) .*ids='job'/);
  assert.match(script, /'hooks replay'\) .*ids='hook'/);
  assert.deepEqual(await json(['hooks', 'delete', id]), [{ id, deleted: true }]);
});
