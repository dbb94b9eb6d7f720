/** `troupe jobs`: jobs as people use them in a shell. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import type { Job, Occurrence } from '#src/contract/wire/job.ts';
import { instantLines, localTime, scheduleText } from '#src/faces/cli/show/job.ts';
import { addMember } from '#test/support/members.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { marimoFile } from './notebook-file.ts';
import { Shell } from './troupe-process.ts';

const server = await startServer(test);
const shell = new Shell(test, server);
const { json, text, troupe } = shell;
const { jobs, notebooks } = server.client;

const MONDAYS = ['--cron', '0 7 * * MON', '--time-zone', 'Europe/Berlin'];

function file(name: string, cells: Readonly<Record<string, string>>): string {
  writeFileSync(join(shell.cwd, name), marimoFile(cells));
  return name;
}

test('jobs create pushes a file, prints the id of the job alone, and shows its next five instants', async () => {
  const { exitCode, out, err } = await troupe([
    'jobs',
    'create',
    file('weekly.py', { sum: '40 + 2' }),
    ...MONDAYS,
  ]);
  assert.equal(exitCode, 0, err);
  assert.match(out, /^job_\w+\n$/);
  assert.match(err, /^imported weekly\.py as nb_\w+\nnext\n/);
  const instants = err.split('\n').slice(2, -1);
  assert.equal(instants.length, 5);
  for (const line of instants) assert.match(line, /^ {2}Mon \d{4}-\d\d-\d\d 07:00:00 GMT\+0[12]:00$/);
  const job = await jobs.get(out.trim());
  assert.deepEqual([job.schedule, job.timeZone], [{ cron: '0 7 * * MON' }, 'Europe/Berlin']);
  assert.equal((await notebooks.get(targetOf(job).notebookId)).title, 'weekly');
  await text(['jobs', 'delete', job.id]);
});

test('jobs create takes the id, the title and the file of a notebook, and pushes what has changed in the file', async () => {
  const name = file('named.py', { one: '1' });
  const id = await text(['notebooks', 'push', name]);
  file('named.py', { one: '2' });
  for (const named of [id, 'named', name]) {
    const job = await json<Job>(['jobs', 'create', named, ...MONDAYS]);
    assert.equal(targetOf(job).notebookId, id, named);
    await text(['jobs', 'delete', job.id]);
  }
  assert.equal((await notebooks.get(id)).serialization.cells[0]?.code, '2');
});

test('jobs create passes on every option', async () => {
  const name = file('options.py', { load: 'import marimo as mo', month: 'mo.cli_args().get("month")' });
  const job = await json<Job>(
    [
      ['jobs', 'create', name, '--every', '2h', '--name', 'Every other hour', '--cells', 'month'],
      ['-p', 'month=3', '--timeout', '60', '--retries', '0', '--catch-up', 'none'],
      ['--overlap', 'queue', '--retry-on', 'all', '--metadata', 'team=sales', '--paused'],
    ].flat(),
  );
  const { serialization } = await notebooks.get(targetOf(job).notebookId);
  assert.deepEqual(targetOf(job).cells, [serialization.cells[1]?.cell_id]);
  assert.deepEqual(
    [job.schedule, job.name, job.arguments, job.timeoutS, job.retries, job.catchUp, job.metadata, job.status],
    [{ everyS: 7200 }, 'Every other hour', ['--month=3'], 60, 0, 'none', { team: 'sales' }, 'paused'],
  );
  assert.deepEqual([job.overlap, job.retryOn, job.next], ['queue', 'all', []]);
  await text(['jobs', 'delete', job.id]);
});

test('a schedule is shown before a job is made, and a wrong one pushes nothing', async () => {
  const name = file('unmade.py', { one: '1' });
  const preview = await text(['jobs', 'create', name, ...MONDAYS, '--preview']);
  assert.equal(preview.split('\n').length, 6);
  const wrong = await troupe(['jobs', 'create', name, '--cron', '0 7 * *']);
  assert.equal(wrong.exitCode, 1);
  assert.match(wrong.err, /\/schedule/);
  for (const few of [[], ['--every', '5m', '--cron', '@daily']])
    assert.deepEqual(await troupe(['jobs', 'create', name, ...few]), {
      exitCode: 2,
      out: '',
      err: 'troupe: Give exactly one of --cron, --every and --at.\n',
    });
  assert.equal((await troupe(['jobs', 'create', name, '--every', '5 minutes'])).exitCode, 2);
  assert.deepEqual((await notebooks.list({ title: 'unmade' })).items, []);
});

test('a wrong schedule is refused with the wrong option, and not with the options that were not meant', async () => {
  const refusal = async (...schedule: string[]) =>
    (await troupe(['jobs', 'create', file('refused.py', { one: '1' }), ...schedule])).err.split('\n')[0];
  assert.deepEqual(
    [
      await refusal('--at', 'tomorrow'),
      await refusal('--every', '999999d'),
      await refusal('--cron', '@nightly'),
      await refusal('--cron', 'nightly'),
      await refusal('--cron', '@daily', '--time-zone', 'Berlin'),
    ],
    [
      'troupe: /schedule/at must be a time such as 2026-01-31T12:00:00Z.',
      'troupe: /schedule/everyS must be <= 31536000.',
      'troupe: The expression is not one of the known names: @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually.',
      'troupe: The expression has one field. It needs five fields, six with seconds, or a name such as @daily.',
      'troupe: There is no time zone with the name Berlin. Names are such as Europe/Berlin and UTC.',
    ],
  );
  const missing = await troupe(['jobs', 'create', 'missing.py', '--cron', '@daily']);
  assert.match(
    missing.err,
    /^troupe: There is no file missing\.py here, and no notebook of yours belongs to it: /,
  );
});

test('commands take the name of a job, unless several jobs have the name', async () => {
  const create = ['jobs', 'create', file('called.py', { one: '1' }), ...MONDAYS, '--name', 'Called by name'];
  const first = await text(create);
  assert.match(await text(['jobs', 'show', 'Called by name']), new RegExp(`job +${first}`));
  assert.equal((await troupe(['jobs', 'run', 'Called by name'])).exitCode, 0);
  assert.match(await text(['jobs', 'history', 'Called by name']), /completed/);
  const second = await text(create);
  const several = await troupe(['jobs', 'delete', 'Called by name']);
  assert.equal(several.exitCode, 2);
  assert.match(several.err, /^troupe: Several jobs have the name Called by name: name one by its id\./);
  for (const id of [first, second]) assert.ok(several.err.includes(`\n  ${id}`));
  await text(['jobs', 'delete', first, second]);
});

test('an argument that no cell takes makes no job', async () => {
  const refused = await troupe([
    'jobs',
    'create',
    file('deaf.py', { one: '1' }),
    ...MONDAYS,
    '-p',
    'month=3',
  ]);
  assert.equal(refused.exitCode, 2);
  assert.match(refused.err, /The notebook takes no argument month\./);
  assert.deepEqual(await json<Job[]>(['jobs', 'list']), []);
});

test('jobs run waits for the run, shows its output, and exits as the run ended', async () => {
  const good = await text(['jobs', 'create', file('good.py', { answer: '40 + 2' }), ...MONDAYS]);
  const fine = await troupe(['jobs', 'run', good]);
  assert.equal(fine.exitCode, 0, fine.err);
  assert.match(fine.out, /answer[\s\S]*42[\s\S]*completed/);
  const [{ runId = null } = {}] = await json<Occurrence[]>(['jobs', 'history', good]);
  assert.match(await text(['runs', 'show', runId ?? '']), /answer[\s\S]*42[\s\S]*completed/);
  const { run, occurrence } = await json<{ run: { status: string }; occurrence: Occurrence }>([
    'jobs',
    'run',
    good,
  ]);
  assert.deepEqual([run.status, occurrence.status], ['completed', 'completed']);

  const bad = await text(['jobs', 'create', file('bad.py', { oops: '1 / 0' }), ...MONDAYS]);
  const failed = await troupe(['jobs', 'run', bad]);
  assert.equal(failed.exitCode, 1);
  assert.match(failed.out, /ZeroDivisionError/);
  await text(['jobs', 'delete', good, bad]);
});

test('jobs run --detach prints the occurrence, and Ctrl-C leaves the run to its job', async () => {
  const name = file('slow.py', { wait: 'import time; time.sleep(600)' });
  const job = await text(['jobs', 'create', name, ...MONDAYS]);
  const occurrenceId = await text(['jobs', 'run', job, '--detach']);
  const running = await eventually('the run has begun', async () => {
    const [occurrence] = await json<Occurrence[]>(['jobs', 'history', job]);
    return occurrence?.status === 'running' ? occurrence : undefined;
  });
  assert.equal(running.id, occurrenceId);
  assert.match(
    await text(['actors', 'list']),
    new RegExp(`${job}.*running`),
    'operators see the job at work',
  );
  assert.match(await text(['actors', 'show', 'job', job]), /running/);
  assert.equal((await troupe(['jobs', 'run', job])).exitCode, 1, 'one occurrence at a time');
  assert.equal((await troupe(['jobs', 'delete', job])).exitCode, 1, 'nor is a running job deleted');
  await text(['runs', 'cancel', running.runId ?? '']);
  await eventually('the occurrence is over', async () => (await jobs.get(job)).status === 'waiting');

  const waiting = shell.start(['jobs', 'run', job]);
  await waiting.until('is running');
  waiting.interrupt();
  assert.equal((await waiting.ended).exitCode, 130);
  const [left] = await json<Occurrence[]>(['jobs', 'history', job]);
  assert.equal(left?.status, 'running');
  const cancelled = shell.start(['runs', 'cancel', left?.runId ?? '']).ended;
  assert.equal((await cancelled).exitCode, 0);
  await eventually('the occurrence is over', async () => (await jobs.get(job)).status === 'waiting');
  await text(['jobs', 'delete', job]);
});

test('show, list and history say why a job is paused, and what to do', async () => {
  const job = await text([
    'jobs',
    'create',
    file('failing.py', { oops: '1 / 0' }),
    ...MONDAYS,
    '--name',
    'Broken',
  ]);
  assert.equal((await troupe(['jobs', 'run', job])).exitCode, 1);
  assert.match(
    await text(['jobs', 'show', job]),
    new RegExp(`status +waiting, the last occurrence failed: troupe jobs history ${job}\n`),
  );
  for (let i = 0; i < 4; i++) assert.equal((await troupe(['jobs', 'run', job])).exitCode, 1);
  const shown = await text(['jobs', 'show', job]);
  assert.match(
    shown,
    /status +paused: 5 occurrences in a row have failed\. The last failure: .*ZeroDivisionError/,
  );
  assert.match(shown, new RegExp(`troupe jobs resume ${job}`));
  assert.equal(shown.match(/ failed /g)?.length, 5, 'its last occurrences');
  assert.match(await text(['jobs', 'list']), /Broken .*paused +5 .*5 occurrences in a row have failed/);
  const history = await text(['jobs', 'history', job, '--limit', '2']);
  assert.deepEqual(history.split('\n').length, 3);
  assert.match(
    history,
    /^DUE +BY +STATUS +ATTEMPTS +TOOK +RUN +REASON\n.*failed +1 .*run_\w+ .*ZeroDivisionError/,
  );
  const resumed = await text(['jobs', 'resume', job]);
  assert.match(resumed, new RegExp(`^${job} is waiting\\.\nnext\n`));
  assert.equal(await text(['jobs', 'pause', job]), `${job} is paused.`);
  assert.match(await text(['jobs', 'show', job]), /paused by a person/);
  await text(['jobs', 'delete', job]);
});

test('a job runs on the open session of its notebook, or says that there is none', async () => {
  const job = await json<Job>([
    'jobs',
    'create',
    file('opened.py', { one: '1' }),
    ...MONDAYS,
    '--open-session',
  ]);
  assert.deepEqual(job.target, {
    notebookId: 'notebookId' in job.target && job.target.notebookId,
    session: 'open',
  });
  const skipped = await troupe(['jobs', 'run', job.id]);
  assert.equal(skipped.exitCode, 1);
  assert.match(skipped.err, /skipped: /);
  assert.match(await text(['jobs', 'history', job.id]), /skipped/);
  await text(['jobs', 'delete', job.id]);
});

test('a prompt needs a conversation and nothing of a notebook', async () => {
  const prompt = ['jobs', 'create', 'conv_none', ...MONDAYS, '--prompt', 'What is new?'];
  const refused = await troupe(prompt);
  assert.deepEqual([refused.exitCode, refused.out], [1, '']);
  assert.match(refused.err, /agentSessionId/);
  const ofFile = await troupe(['jobs', 'create', 'prompt.py', ...MONDAYS, '--prompt', 'What is new?']);
  assert.deepEqual(
    [ofFile.exitCode, ofFile.err],
    [
      2,
      'troupe: A prompt needs the id of a conversation in place of prompt.py: troupe agent list shows the ids.\n',
    ],
  );
  assert.equal((await troupe([...prompt, '-p', 'month=3'])).exitCode, 2);
});

test('an owner of the workspace takes over the job of a member who has left', async () => {
  const ada = await addMember(server, 'ada', 'editor');
  const own = { SERVICE_ACCESS_TOKEN: ada.token };
  const job = await text(['jobs', 'create', file('left.py', { one: '1' }), ...MONDAYS], { env: own });
  await text(['member', 'revoke', 'ada']);
  const fired = await troupe(['jobs', 'run', job]);
  assert.equal(fired.exitCode, 1);
  assert.match(fired.err, /skipped: The owner of the job, ada, is no longer a member of the workspace\./);
  assert.match(await text(['jobs', 'show', job]), new RegExp(`troupe jobs resume ${job} --take-over`));
  await text(['jobs', 'resume', job, '--take-over']);
  assert.equal((await troupe(['jobs', 'run', job])).exitCode, 0);
  await text(['jobs', 'delete', job]);
});

test('ids of jobs are completed', async () => {
  const job = await text(['jobs', 'create', file('completed.py', { one: '1' }), ...MONDAYS]);
  assert.equal(await text(['complete-ids', 'job']), job);
  await text(['jobs', 'delete', job]);
});

test('an instant is shown in the time zone of its job, and a schedule as its options name it', () => {
  assert.equal(localTime('2027-03-28T01:00:00.000Z', 'Europe/Berlin'), 'Sun 2027-03-28 03:00:00 GMT+02:00');
  assert.equal(localTime('2027-03-28T01:00:00.000Z', 'Not/Known'), '2027-03-28T01:00:00.000Z');
  assert.equal(instantLines([], 'UTC'), 'The schedule has no further instant.\n');
  const timeZone = 'UTC';
  for (const [everyS, shown] of [
    [604_800, '7d'],
    [7_200, '2h'],
    [900, '15m'],
    [90, '90s'],
  ] as const)
    assert.equal(scheduleText({ schedule: { everyS }, timeZone }), `every ${shown}`);
});

/** Returns the notebook of a job. */
function targetOf({ target }: Job) {
  assert.ok('notebookId' in target);
  return target;
}

test('jobs report writes the page of the last run, and says why there is none', async () => {
  const name = file('paged.py', { sum: '40 + 2' });
  const plain = await json<Job>(['jobs', 'create', name, ...MONDAYS]);
  const none = await troupe(['jobs', 'report', plain.id]);
  assert.equal(none.exitCode, 1);
  assert.match(none.err, /No occurrence of job_\w+ has a page\. Jobs that were made with --report have one/);
  const job = await json<Job>(['jobs', 'create', name, ...MONDAYS, '--report']);
  assert.deepEqual(job.outputs, ['html']);
  const { occurrence } = await json<{ readonly occurrence: Occurrence }>(['jobs', 'run', job.id]);
  await eventually('the occurrence has its page', async () =>
    (await jobs.occurrences(job.id)).items.some(({ report }) => report !== undefined),
  );
  for (const options of [[], ['--occurrence', occurrence.id]]) {
    assert.equal((await troupe(['jobs', 'report', job.id, '-o', 'page.html', ...options])).exitCode, 0);
    assert.match(readFileSync(join(shell.cwd, 'page.html'), 'utf8'), /<html[\s\S]*42/);
  }
  const unknown = await troupe(['jobs', 'report', job.id, '--occurrence', 'occ_unknown']);
  assert.match(unknown.err, /The job has no occurrence occ_unknown\./);
  for (const { id } of [plain, job]) await text(['jobs', 'delete', id]);
});
