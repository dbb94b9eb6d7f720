// Keeps V8's compiled code of the bundled programs for their later starts (program.mjs): each program runs once, and
// writes its code at its end (code-cache-recorder.mjs). So the cache also contains functions that V8 compiles only
// when a start calls them. If a cache cannot be made, a start takes longer.
import { accessSync, chmodSync, constants, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { start } from './children.mjs';
import { digest, readStamp, writeStamp } from './stamps.mjs';

/** The announcement of set-up while the step runs. In a checkout the build does this. */
export const title = 'compiling the programs';

const RECORDER = new URL('./code-cache-recorder.mjs', import.meta.url).href;
const MAX_RUN_MS = 20_000;
/**
 * The program that runs in place of Python, which may not be installed yet. It prints nothing, and ends with its
 * standard input.
 */
const SILENT_PYTHON = '#!/bin/sh\nexec cat >/dev/null\n';

/**
 * Returns why the compiled code of an installed package must be written, or undefined when it fits this Node.js. Also
 * returns undefined where this user cannot write it: the programs then start more slowly.
 */
export function pending(root) {
  if (readStamp(stampPath(root)) === wanted()) return undefined;
  try {
    accessSync(join(root, 'dist', 'server'), constants.W_OK);
  } catch {
    return undefined;
  }
  return 'there is none for this Node.js';
}

/** Writes the compiled code of the programs. */
export async function perform(root) {
  await writeCodeCaches(root);
  writeStamp(stampPath(root), wanted());
}

const stampPath = (root) => join(root, 'dist', 'server', '.troupe-stamp');
const wanted = () => digest(process.version, process.arch);

/** Resolves when the programs have run. Their failures never reject it. */
export async function writeCodeCaches(root) {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-code-cache-'));
  try {
    await runServer(join(root, 'dist', 'server', 'main.js'), folder);
    await runProgram([join(root, 'dist', 'server', 'cli.js'), '--version'], folder).ended;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Starts a server on an empty data directory, waits until it responds, and ends it. */
async function runServer(main, folder) {
  const python = join(folder, 'python');
  writeFileSync(python, SILENT_PYTHON);
  chmodSync(python, 0o755);
  const { child, ended } = runProgram([main], folder, {
    TROUPE_DATA_DIR: join(folder, 'data'),
    TROUPE_HOST: '127.0.0.1',
    TROUPE_PORT: '0',
    TROUPE_LOG_LEVEL: 'silent',
    TROUPE_PYTHON: python,
  });
  let said = '';
  child?.stderr.setEncoding('utf8').on('data', async (text) => {
    said += text;
    const [, url] = /listens on (\S+)\n/.exec(said) ?? [];
    if (url === undefined) return;
    child.stderr.removeAllListeners('data').resume();
    await fetch(`${url}/healthz`)
      .then((response) => response.text())
      .catch(() => {});
    child.kill('SIGTERM');
  });
  await ended;
}

/** Runs a program that is built; `ended` resolves when it has ended in any way. */
function runProgram(args, cwd, settings = {}) {
  if (!existsSync(args[0])) return { ended: Promise.resolve() };
  const { PATH = '' } = process.env;
  const child = start(process.execPath, ['--import', RECORDER, ...args], {
    cwd,
    env: { PATH, HOME: cwd, NODE_ENV: 'production', ...settings },
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: MAX_RUN_MS,
    killSignal: 'SIGKILL',
  });
  child.stderr.resume();
  const ended = new Promise((resolve) => {
    child.once('error', resolve);
    child.once('close', resolve);
  });
  return { child, ended };
}
