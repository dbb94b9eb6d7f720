// own kernel host: it looks at the start of the host
import assert from 'node:assert/strict';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { startChildServer } from '#test/support/child-server.ts';
import { type OpenNotebook, openNotebook, printed, results } from '#test/support/notebook-fixture.ts';
import { descendants, eventually, gone, kernelHostOf } from '#test/support/processes.ts';
import { PYTHON } from '#test/support/stand-ins/python-databases.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';

const CODES = { loaded: 'import sys\nprint("pandas" in sys.modules)', endless: 'while True: pass' };

async function hasPandas(notebook: OpenNotebook): Promise<boolean> {
  const [result] = results(await notebook.run(['loaded']));
  return printed(result!) === 'True\n';
}

/**
 * Returns a Python whose kernel host loads no library until the file exists, so that a session can
 * begin before.
 */
function pythonThatHoldsLibraries(folder: string, released: string): string {
  const hold = `
import os, sys, time
class Hold:
    @staticmethod
    def find_spec(name, path, target=None):
        with open("/proc/self/comm") as file:
            is_loading = "preload" in file.read()
        while is_loading and not os.path.exists(${JSON.stringify(released)}):
            time.sleep(0.01)
sys.meta_path.insert(0, Hold)
`;
  writeFileSync(join(folder, 'sitecustomize.py'), hold);
  const wrapper = join(folder, 'python');
  writeFileSync(wrapper, `#!/bin/sh\nPYTHONPATH='${folder}' exec '${PYTHON}' "$@"\n`);
  chmodSync(wrapper, 0o755);
  return wrapper;
}

test('sessions from before and after the libraries are loaded run, are cancelled and are restored', async (t) => {
  const folder = temporaryDirectory(t);
  const released = join(folder, 'released');
  const child = await startChildServer(t, {
    TROUPE_PRELOAD: 'true',
    TROUPE_PYTHON: pythonThatHoldsLibraries(folder, released),
  });
  const before = await openNotebook(child, CODES);
  assert.equal(await hasPandas(before), false, 'a session does not wait for libraries');
  writeFileSync(released, '');
  const after = await eventually('a new session has pandas loaded', async () => {
    const notebook = await openNotebook(child, CODES);
    if (await hasPandas(notebook)) return notebook;
    await notebook.close();
    return undefined;
  });
  for (const notebook of [before, after]) {
    const runId = await notebook.submit(['endless']);
    await child.client.runs.cancel(runId);
    assert.equal((await child.client.waitForRun(runId)).status, 'cancelled');
  }
  const { guardian, preload = 0 } = kernelHostOf(child.pid);
  const processes = descendants(guardian);
  process.kill(preload, 'SIGKILL');
  await gone(processes);
  for (const notebook of [before, after]) {
    await eventually('the session is ready again', async () => (await notebook.record()).status === 'ready');
    assert.equal((await notebook.run(['loaded'])).status, 'completed');
  }
});
