// own kernel host: it looks at the processes and the end of the host
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { classifyExit, type EndFacts, type KernelExit } from '#src/confined/processes/exit-classification.ts';
import { OomWatch } from '#src/confined/processes/host/oom-watch.ts';
import { NO_PROCESS_LIMITS } from '#src/confined/processes/limits.ts';

const FACTS: EndFacts = {
  wasReady: true,
  asked: null,
  hostLost: false,
  refusal: null,
  end: null,
  wasOutOfMemory: () => false,
  limits: NO_PROCESS_LIMITS,
};
const exited = (code: number) => ({ code, signal: null });
const killed = (signal: number) => ({ code: 0, signal });
const protocol = {
  cause: 'kernel_protocol_error',
  message: 'The kernel sent a frame that is not JSON.',
} as const;

const TABLE: readonly (readonly [string, Partial<EndFacts>, KernelExit])[] = [
  [
    'its own exit code',
    { end: exited(3) },
    {
      cause: 'kernel_exited',
      code: 3,
      signal: null,
      message: 'The kernel ended: its process exited with code 3.',
    },
  ],
  [
    'a closed socket and no word from the host',
    {},
    {
      cause: 'kernel_exited',
      code: null,
      signal: null,
      message: 'The kernel ended: it closed its connection.',
    },
  ],
  [
    'a strange SIGKILL',
    { end: killed(9) },
    {
      cause: 'kernel_killed',
      code: null,
      signal: 'SIGKILL',
      message: 'The kernel ended: it was killed by SIGKILL.',
    },
  ],
  [
    'a crash',
    { end: killed(11) },
    {
      cause: 'kernel_killed',
      code: null,
      signal: 'SIGSEGV',
      message: 'The kernel ended: native code crashed it (SIGSEGV).',
    },
  ],
  [
    'an abort below a memory limit',
    { end: killed(6), limits: { ...NO_PROCESS_LIMITS, memoryBytes: 2 ** 30 } },
    {
      cause: 'kernel_killed',
      code: null,
      signal: 'SIGABRT',
      message:
        'The kernel ended: it was killed by SIGABRT, perhaps because it reached its limit of 1024 MiB of memory.',
    },
  ],
  [
    'all its processor time',
    { end: killed(24), limits: { ...NO_PROCESS_LIMITS, cpuSeconds: 60 } },
    {
      cause: 'kernel_killed',
      code: null,
      signal: 'SIGXCPU',
      message:
        'The kernel ended: it was killed by SIGXCPU, because it reached its limit of 60 s of processor time.',
    },
  ],
  [
    'its own control group full',
    { end: { ...killed(9), outOfMemory: true }, limits: { ...NO_PROCESS_LIMITS, memoryBytes: 2 ** 30 } },
    {
      cause: 'kernel_out_of_memory',
      code: null,
      signal: 'SIGKILL',
      message: 'The kernel was killed, because it reached its limit of 1024 MiB of memory.',
    },
  ],
  [
    'the machine out of memory',
    { end: killed(9), wasOutOfMemory: () => true },
    {
      cause: 'kernel_out_of_memory',
      code: null,
      signal: 'SIGKILL',
      message: 'The kernel was killed because the machine ran out of memory.',
    },
  ],
  [
    'our own kill, whatever the host says',
    { asked: 'kill', end: exited(0) },
    { cause: 'kernel_killed', code: null, signal: 'SIGKILL', message: 'The server killed the kernel.' },
  ],
  [
    'a stop that needed a kill',
    { asked: 'stop', end: killed(9) },
    { cause: 'stopped', code: null, signal: 'SIGKILL', message: 'The kernel was stopped.' },
  ],
  [
    'a stop before it was ready',
    { asked: 'stop', wasReady: false },
    { cause: 'stopped', code: null, signal: null, message: 'The kernel was stopped.' },
  ],
  [
    'the host gone',
    { hostLost: true },
    {
      cause: 'kernel_host_lost',
      code: null,
      signal: null,
      message: 'The process that runs all kernels has ended, and this kernel with it.',
    },
  ],
  ['a broken protocol', { refusal: protocol }, { ...protocol, code: null, signal: null }],
  [
    'a start that the system refused, without its paths',
    {
      wasReady: false,
      end: {
        ...exited(70),
        words:
          "Traceback (most recent call last):\n  …\nPermissionError: [Errno 13] Permission denied: '/secret'",
      },
    },
    {
      cause: 'kernel_start_failed',
      code: 70,
      signal: null,
      message:
        'The kernel did not start: its process exited with code 70 (PermissionError: Permission denied).',
    },
  ],
  [
    'a start that failed in Python, without its words',
    { wasReady: false, end: { ...exited(70), words: 'msgspec.ValidationError: `/secret` is wrong' } },
    {
      cause: 'kernel_start_failed',
      code: 70,
      signal: null,
      message: 'The kernel did not start: its process exited with code 70 (ValidationError).',
    },
  ],
  [
    'a start for which the system had no thread left',
    { wasReady: false, end: { ...exited(70), words: "Traceback\n…\nRuntimeError: can't start new thread" } },
    {
      cause: 'kernel_start_failed',
      code: 70,
      signal: null,
      message:
        'The kernel did not start: its process exited with code 70 (no process or thread could be started, because a limit of processes is reached: ' +
        'raise TasksMax of the unit, the limit of the container (--pids-limit) or of the user (ulimit -u), or open fewer sessions; ' +
        'TROUPE_KERNEL_PROCESSES limits each kernel).',
    },
  ],
  [
    'a start that failed with words of others',
    { wasReady: false, end: { ...exited(70), words: 'cannot open /secret' } },
    {
      cause: 'kernel_start_failed',
      code: 70,
      signal: null,
      message: 'The kernel did not start: its process exited with code 70.',
    },
  ],
  [
    'a death before it was ready',
    { wasReady: false, end: exited(70) },
    {
      cause: 'kernel_start_failed',
      code: 70,
      signal: null,
      message: 'The kernel did not start: its process exited with code 70.',
    },
  ],
];

test('each kill by the out-of-memory killer is noticed once, even if a counter of the control group does not exist', () => {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-oom-'));
  const counter = join(folder, 'vmstat');
  const count = (kills: number) => writeFileSync(counter, `pgfault 17\noom_kill ${kills}\nother 3\n`);
  count(4);
  const watch = new OomWatch([join(folder, 'missing'), counter]);
  const before = watch.hasKilled();
  count(5);
  assert.deepEqual([before, watch.hasKilled(), watch.hasKilled()], [false, true, false]);
  rmSync(folder, { recursive: true });
  assert.equal(watch.hasKilled(), false);
});

for (const [name, facts, expected] of TABLE) {
  test(`${name} is ${expected.cause}`, () => {
    assert.deepEqual(classifyExit({ ...FACTS, ...facts }), expected);
  });
}
