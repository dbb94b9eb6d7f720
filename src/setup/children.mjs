// The programs that set-up runs. None outlives it: a signal to set-up ends them first, with all they have started.
import { spawn } from 'node:child_process';
import { SetupError } from './say.mjs';

const TAIL_LINES = 40;
const running = new Set();

/**
 * Runs a program in its own process group and resolves with its output once it has ended. Rejects with a `SetupError`
 * that holds `failure` and the end of the output when it does not end with code 0. `keepOpen` is a descriptor that
 * the program inherits.
 */
export function run(command, args, { cwd, failure, env = process.env, keepOpen }) {
  return new Promise((resolve, reject) => {
    const stdio = ['ignore', 'pipe', 'pipe'];
    if (keepOpen !== undefined) stdio.push(keepOpen);
    const child = spawn(command, args, { cwd, env, stdio, detached: true });
    running.add(child);
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8');
      stream.on('data', (text) => {
        output += text;
      });
    }
    child.once('error', (error) => {
      running.delete(child);
      reject(new SetupError(`${failure}: ${command}: ${error.message}`));
    });
    child.once('close', (code, signal) => {
      running.delete(child);
      if (code === 0) return resolve(output);
      const tail = output.trimEnd().split('\n').slice(-TAIL_LINES).join('\n');
      reject(new SetupError(`${failure} (${signal ?? `exit code ${code}`}).\n${tail}`));
    });
  });
}

function endChildren() {
  for (const child of running) {
    try {
      process.kill(-child.pid, 'SIGKILL');
    } catch {
      // It has ended in the meantime.
    }
  }
}

/** While `work` runs, SIGINT, SIGTERM and SIGHUP end its programs and then this process, as the signal would have. */
export async function endingWithUs(work) {
  const numbers = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 };
  const onSignal = (signal) => {
    endChildren();
    process.exit(128 + numbers[signal]);
  };
  for (const signal of Object.keys(numbers)) process.on(signal, onSignal);
  try {
    return await work();
  } finally {
    endChildren();
    for (const signal of Object.keys(numbers)) process.off(signal, onSignal);
  }
}
