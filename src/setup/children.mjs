// The programs that set-up runs. A signal to set-up kills them and all their children first, so none outlives it.
import { spawn } from 'node:child_process';
import { SetupError } from './console.mjs';

const TAIL_LINES = 40;
const running = new Set();

/**
 * Settings of the server, and keys, are removed: no program of the set-up needs them, and other
 * programs could read them in its environment.
 */
const OF_THE_SERVER = /^TROUPE_|_API_KEY$/;
const environment = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !OF_THE_SERVER.test(name)),
);

/**
 * Runs a program in its own process group and resolves with its output. Rejects with a `SetupError` that holds `failure`
 * and the end of the output when the exit code is not 0. The program inherits the descriptor `keepOpen`.
 */
export function run(command, args, { cwd, failure, env = environment, keepOpen }) {
  return new Promise((resolve, reject) => {
    const stdio = ['ignore', 'pipe', 'pipe'];
    if (keepOpen !== undefined) stdio.push(keepOpen);
    const child = start(command, args, { cwd, env, stdio });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8');
      stream.on('data', (text) => {
        output += text;
      });
    }
    child.once('error', (error) => reject(new SetupError(`${failure}: ${command}: ${error.message}`)));
    child.once('close', (code, signal) => {
      if (code === 0) return resolve(output);
      const tail = output.trimEnd().split('\n').slice(-TAIL_LINES).join('\n');
      reject(new SetupError(`${failure} (${signal ?? `exit code ${code}`}).\n${tail}`));
    });
  });
}

/** Returns a program that runs in its own process group. It ends with set-up. */
export function start(command, args, options) {
  const child = spawn(command, args, { ...options, detached: true });
  running.add(child);
  for (const event of ['error', 'close']) child.once(event, () => running.delete(child));
  return child;
}

function endChildren() {
  for (const child of running) {
    try {
      process.kill(-child.pid, 'SIGKILL');
    } catch {
      // The process has ended in the meantime.
    }
  }
}

/**
 * Runs `work`. During that time SIGINT, SIGTERM and SIGHUP kill its programs and then end this
 * process with the usual code.
 */
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
