/** The server process: it reads the settings and serves, alone, above workers, or as one of them. Only this file ends it. */
import './process/begin.ts'; // first: before anything is opened
import { fileURLToPath } from 'node:url';
import { Secret } from '#src/base/caller/secret.ts';
import { allowSettingsFile, ConfigError, loadConfig } from '#src/base/config/config.ts';
import { showSourcePlaces } from '#src/base/install/source-places.ts';
import { openLog } from '#src/base/log/log.ts';
import { type ToPrimary, type ToWorker, WORKER_ARGUMENT } from '#src/cluster/messages.ts';
import { say } from './process/announce.ts';
import { type ServeOptions, serveAlone } from './process/serve-alone.ts';

/** How long a worker that cannot start tries to say why. */
const LAST_WORDS_MS = 1000;

/** The program that workers run: this one. */
const WORKER_PROGRAM = fileURLToPath(new URL('./main.js', import.meta.url));

/** Settles once the process serves, or cannot. (The bundle is a script, which cannot await it itself.) */
export const ended = main();

async function main(): Promise<void> {
  // Only the user of this process may read its files, regardless of the umask it was started with.
  process.umask(0o077);
  // Lines for people are lost when the disk of their file is full or nobody reads their pipe. The server continues.
  process.stderr.on('error', () => {});
  showSourcePlaces();
  const { config } = load();
  const isWorker = process.argv[2] === WORKER_ARGUMENT && process.send !== undefined;
  if (!isWorker) allowSettingsFile();
  const secrets = Object.values(config).filter((value): value is Secret => value instanceof Secret);
  const log = openLog({ level: config.logLevel, secrets, isShared: config.workers > 1 });
  // Node.js would print the error with the secrets in it, and the log would not say why the process has ended.
  process.on('uncaughtException', (error) => {
    log.fatal(
      { err: error },
      'The process ends because of an internal error; everything that it has acknowledged is stored.',
    );
    log.flush();
    process.exit(1);
  });
  const options: ServeOptions = { config, log, secrets, end: (code) => process.exit(code), fail };
  try {
    if (isWorker) await serveBelow(options);
    else if (config.workers === 1) await serveAlone(options);
    else {
      const { serveWithWorkers } = await import('./process/serve-with-workers.ts');
      await serveWithWorkers(options, WORKER_PROGRAM);
    }
  } catch (error) {
    log.flush();
    const message = error instanceof Error ? error.message : String(error);
    if (isWorker) failBelow(message);
    else fail(message);
  }
}

async function serveBelow(options: ServeOptions): Promise<void> {
  // Without its primary nobody watches it, and another server may claim the data directory.
  process.on('disconnect', () => process.exit(1));
  const { serveAsWorker } = await import('./process/serve-as-worker.ts');
  await serveAsWorker(options, {
    send: (message) => {
      process.send?.(message, undefined, undefined, () => {});
    },
    onMessage: (listener) => {
      process.on('message', (message) => listener(message as ToWorker));
    },
  });
}

function load(): ReturnType<typeof loadConfig> {
  try {
    return loadConfig();
  } catch (error) {
    if (error instanceof ConfigError) return fail(error.message);
    throw error;
  }
}

function fail(message: string): never {
  say(`troupe: ${message}`);
  process.exit(1);
}

/** The primary prints why one of its workers does not start. */
function failBelow(message: string): void {
  const words: ToPrimary = { op: 'failed', message };
  process.send?.(words, undefined, undefined, () => process.exit(1));
  setTimeout(() => process.exit(1), LAST_WORDS_MS);
}
