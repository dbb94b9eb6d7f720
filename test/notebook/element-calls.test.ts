/** The limits of requests for UI elements and completions, with a session that a test holds. */
import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { AppError } from '#src/base/errors/errors.ts';
import type { CompletionResult } from '#src/confined/processes/kernel/messages.ts';
import { KernelAnswers } from '#src/notebook/open/kernel-answers.ts';
import { ElementCalls } from '#src/notebook/requests/element-calls.ts';
import type { NotebookRequestContext } from '#src/notebook/requests/request-context.ts';
import { testContext } from '#test/support/test-context.ts';

type Option = CompletionResult['options'][number];

const TURN_MS = 30_000;
const CALLER = { workspaceId: 'ws_1', userId: 'ada' } as Parameters<ElementCalls['setValues']>[0];
const NEVER = new AbortController().signal;
/** The state of a session that works. */
const BUSY = {
  matches: (state: unknown) => Object(state).live === 'busy',
  hasTag: (tag: string) => tag === 'passing',
};

/** Returns the calls of a busy session. `complete` is called with the id of each completion that the kernel is asked for. */
function callsOf(complete: (id: string, answers: KernelAnswers) => void = () => {}): ElementCalls {
  const answers = new KernelAnswers();
  const live = { answers, kernel: { complete: ({ id }: { id: string }) => complete(id, answers) } };
  return new ElementCalls(
    testContext<NotebookRequestContext>({
      store: {},
      sessions: {
        whenReadable: async (_: string, __: string, then: () => unknown) => then(),
        ensureAwake: (workspaceId: string, id: string) => ({ workspaceId, id }),
      },
      actors: {
        peek: () => ({ snapshot: BUSY }),
        watch: () => () => {},
      },
      work: {
        check() {
          throw new AppError('session_busy', 'The session is busy.');
        },
      },
      liveNotebooks: { of: () => live },
    }),
  );
}

/** Stops the clock. Returns a function that moves it, and lets everything happen that waits for it. */
function holdClock(t: TestContext): (ms: number) => Promise<void> {
  let nowMs = 0;
  t.mock.timers.enable({ apis: ['setTimeout'] });
  t.mock.method(performance, 'now', () => nowMs);
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
  return async (ms) => {
    await settle();
    nowMs += ms;
    t.mock.timers.tick(ms);
    await settle();
  };
}

/** Returns a list that gets the outcome of each promise once it has one. */
function outcomesOf(promises: readonly Promise<unknown>[]): string[] {
  const outcomes: string[] = [];
  for (const promise of promises)
    promise.then(
      () => outcomes.push('done'),
      (error) => outcomes.push(error.code),
    );
  return outcomes;
}

test('requests to a session that stays busy are refused after 30 seconds, each counted from its arrival', async (t) => {
  const pass = holdClock(t);
  const calls = callsOf();
  const call = { namespace: 'n', functionName: 'f', args: {}, timeoutS: 60 };
  const first = outcomesOf([
    calls.setValues(CALLER, 'nb_1', { values: {} }, NEVER),
    calls.callFunction(CALLER, 'nb_1', call, NEVER),
  ]);
  await pass(10_000);
  const later = outcomesOf([calls.setValues(CALLER, 'nb_1', { values: {} }, NEVER)]);
  await pass(TURN_MS - 10_000 - 1);
  assert.deepEqual([first, later], [[], []]);
  await pass(1);
  assert.deepEqual([first, later], [['session_busy', 'session_busy'], []]);
  await pass(10_000 - 1);
  assert.deepEqual(later, []);
  await pass(1);
  assert.deepEqual(later, ['session_busy']);
});

test('a completion has no options if the kernel takes 30 seconds', async (t) => {
  const pass = holdClock(t);
  const answer = callsOf().complete(CALLER, 'nb_1', { code: 'x' }, NEVER);
  const outcome = outcomesOf([answer]);
  await pass(TURN_MS - 1);
  assert.deepEqual(outcome, []);
  await pass(1);
  assert.deepEqual(await answer, { prefixLength: 0, options: [], isIncomplete: true });
});

test('a completion has up to 1,000 options and 1 MiB of text, and reports omitted options', async () => {
  const complete = async (options: readonly Option[]) => {
    const calls = callsOf((id, answers) => {
      const result = {
        op: 'completion-result',
        completionId: id,
        prefixLength: 1,
        options,
        fields: {},
      } as const;
      setImmediate(() => answers.take(result));
    });
    const answer = await calls.complete(CALLER, 'nb_1', { code: 'x' }, NEVER);
    return [answer.options.length, answer.isIncomplete];
  };
  const option = (name: string, info: string | null = null) => ({ name, type: 'name', info });
  const many = (count: number) => Array.from({ length: count }, (_, at) => option(`x${at}`));
  assert.deepEqual(await complete(many(1000)), [1000, false]);
  assert.deepEqual(await complete(many(1001)), [1000, true]);
  const rest = 2 ** 20 - option('one').name.length - 'two'.length - 2 * 'name'.length;
  assert.deepEqual(await complete([option('one'), option('two', 'i'.repeat(rest))]), [2, false]);
  assert.deepEqual(await complete([option('one'), option('two', 'i'.repeat(rest + 1))]), [1, true]);
});
