import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';

/** A running script. */
export interface ChildScript {
  /** Resolves with the next line that it prints. Rejects when it ends without one. */
  line(): Promise<string>;
  /** Sends SIGKILL. Resolves when the process has ended. */
  kill(): Promise<void>;
}

/** Runs a script of this folder in its own process, which ends with the test. */
export function childScript(t: TestContext, name: string, ...args: string[]): ChildScript {
  const script = fileURLToPath(new URL(`./${name}.js`, import.meta.url));
  const child: ChildProcessByStdio<null, Readable, null> = spawn(
    process.execPath,
    ['--conditions=development', script, ...args],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const gone = once(child, 'close');
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const kill = async () => {
    child.kill('SIGKILL');
    await gone;
  };
  t.after(kill);
  return {
    kill,
    async line() {
      const { value, done } = await lines.next();
      if (done === true) throw new Error(`${name} ended.`);
      return value;
    },
  };
}
