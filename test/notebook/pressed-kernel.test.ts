import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createActor } from 'xstate';
import type { Kernel } from '#src/confined/processes/kernel/kernel.ts';
import { kernelDriver } from '#src/notebook/open/kernel-driver.ts';
import { startTestHost } from '#test/confined/kernel-fixture.ts';
import { text } from '#test/runtime/events/recording-sink.ts';
import { eventually } from '#test/support/processes.ts';
import { openUnsavedNotebook } from './unsaved-notebook.ts';

const LIMIT_BYTES = 10_000;

/**
 * Returns an open notebook of one cell, whose session's stream holds more than its limit until
 * `release` is called.
 */
function openPressed(code: string) {
  const { live, stream } = openUnsavedNotebook({ a: code }, { limitBytes: LIMIT_BYTES });
  let release = () => {};
  const committed = new Promise<void>((resolve) => {
    release = resolve;
  });
  stream.publish(text('x'.repeat(LIMIT_BYTES)), committed);
  return { live, release };
}

test('a kernel that starts while subscribers lag becomes ready, and then waits for the subscribers', async () => {
  await using host = await startTestHost();
  const mark = join(host.work, 'printed');
  const code = `print("some text", flush=True)\nopen(${JSON.stringify(mark)}, "w").close()`;
  const { live, release } = openPressed(code);
  let [onReady, onDone, onExited] = [() => {}, () => {}, (_error: Error) => {}];
  let heard = 0;
  const ready = new Promise<void>((resolve, reject) => {
    onReady = resolve;
    onExited = reject;
  });
  const done = new Promise<void>((resolve) => {
    onDone = resolve;
  });
  let kernel: Kernel | undefined;
  const context = { liveNotebooks: { of: () => live }, log: { error: () => {} } };
  const driver = kernelDriver(context, {
    kernels: {
      startKernel: (launch, sink) => {
        kernel = host.host.startKernel(launch, {
          ...sink,
          ready: (info) => {
            sink.ready(info);
            onReady();
          },
          messages: (batch) => {
            sink.messages(batch);
            heard += batch.length;
            if (
              batch.some((message) => message.op === 'bridge-done' && message.type === 'ExecuteCellsCommand')
            )
              onDone();
          },
          exited: (exit) => {
            sink.exited(exit);
            onExited(new Error(exit.message));
          },
        });
        return kernel;
      },
    },
    rpcHandlerOf: () => ({ call: async () => ['{}'], [Symbol.dispose]: () => undefined }),
    forgetFiles: () => undefined,
    launchOf: () => ({ id: 'nb_1', cwd: host.work, env: {}, cells: live.launchCells(), appOptions: {} }),
  });
  const actor = createActor(driver, { input: {} as never }).start();
  await ready;
  const heardBefore = heard;
  kernel!.execute({ cellIds: ['a'], codes: [code] });
  await eventually('the kernel has sent what the cell printed', () => existsSync(mark));
  for (let turn = 0; turn < 10; turn++) await nextTurn();
  assert.equal(heard, heardBefore, 'it is not read');
  release();
  await done;
  actor.stop();
});
