/** Why a kernel has ended, as the page of a notebook says it. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { type KernelEnd, SLEEP_REASONS } from '#machines/notebook-session.ts';
import { FAILURES, type FailureCode } from '#src/base/errors/failures.ts';
import { sentenceOfEnd } from '#src/notebook/pages/kernel-ends.ts';

/** Codes with which no kernel ends: those of prompts, and of runs whose kernel lives on. */
const OF_NO_KERNEL = /^(agent|model|cell)_|^(timed_out|session_closed|kernel_command_failed)$/;

const SENTENCES: Readonly<Record<string, string>> = {
  idle: 'The kernel was ended after 30 minutes without use.',
  hibernated: 'The kernel was stopped.',
  kernel_start_failed: 'The kernel did not start.',
  kernel_start_timeout: 'The kernel did not become ready in time.',
  kernel_exited: 'The kernel ended by itself.',
  kernel_killed: 'The kernel was killed: by a signal, or because an interrupt did not stop it.',
  kernel_out_of_memory: 'The kernel used more memory than it may.',
  kernel_stuck: 'The kernel did not end when it was killed.',
  kernel_protocol_error:
    'The server ended the kernel, because it sent a message that the server could not read.',
  kernel_host_lost: 'The process that runs all kernels ended.',
  stopped: 'The kernel was stopped by the server.',
  server_stopped: 'The server was stopped.',
};

test('each reason for the end of a kernel has a sentence', () => {
  const failures = (Object.keys(FAILURES) as FailureCode[]).filter((code) => !OF_NO_KERNEL.test(code));
  const reasons: readonly KernelEnd[] = [...SLEEP_REASONS, ...failures];
  assert.deepEqual(
    Object.fromEntries(reasons.map((reason) => [reason, sentenceOfEnd(reason, 1800)])),
    SENTENCES,
  );
});

for (const [seconds, text] of [
  [1, '1 second'],
  [90, '90 seconds'],
  [60, '1 minute'],
  [5400, '90 minutes'],
  [3600, '1 hour'],
  [86_400, '24 hours'],
] as const)
  test(`a kernel that was not used for ${seconds} seconds was ended after ${text}`, () => {
    assert.equal(sentenceOfEnd('idle', seconds), `The kernel was ended after ${text} without use.`);
  });
