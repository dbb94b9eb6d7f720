/** Checks of the data directory, of the files in it, of the disk and of the port. */
import { accessSync, constants, existsSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname } from 'node:path';
import type { Config } from '#src/config.ts';
import { DataDirectory } from '#storage/data-directory.ts';
import { type Finding, messageOf, ok, problem, warning } from './finding.ts';

const MIB = 1024 * 1024;
const LITTLE_BYTES = 1024 * MIB;
const TOO_LITTLE_BYTES = 100 * MIB;

/** Checks that the data directory can be written, is private, and whether a server is using it. */
export async function checkDataDirectory(path: string): Promise<Finding[]> {
  const [name, lock] = ['data directory', 'data directory lock'];
  if (!existsSync(path)) {
    const parent = firstExisting(path);
    if (isWritable(parent)) return [ok(name, `${path} will be created at the first start`)];
    const advice = `Make ${parent} writable, or set TROUPE_DATA_DIR.`;
    return [problem(name, `${path} cannot be created: ${parent} is not writable`, advice)];
  }
  const { mode } = statSync(path);
  const shown = `${path}, mode ${(mode & 0o777).toString(8)}`;
  const rights = !isWritable(path)
    ? problem(name, `${shown}, is not writable`, `Make ${path} writable for the user that runs the server.`)
    : (mode & 0o077) !== 0
      ? warning(
          name,
          `${shown}, can be accessed by other users`,
          `The next start of the server corrects this; or run: chmod 700 ${path}`,
        )
      : ok(name, shown);
  const isHeld = await DataDirectory.isClaimed(path);
  return [rights, ok(lock, isHeld ? 'held by a running server' : 'free')];
}

/** Checks that the keyring, if there is one, is readable and private. */
export function checkKeyring(path: string): Finding {
  const name = 'keyring';
  if (!existsSync(path)) return ok(name, `${path} will be created when it is needed`);
  try {
    const { active } = { active: undefined, ...Object(JSON.parse(readFileSync(path, 'utf8'))) };
    if (typeof active !== 'string') throw new Error('it does not name an active key');
  } catch (error) {
    const why = error instanceof SyntaxError ? 'it is not valid JSON' : messageOf(error);
    return problem(name, `${path} cannot be used: ${why}`, 'Restore it from its backup.');
  }
  if ((statSync(path).mode & 0o077) === 0) return ok(name, path);
  return warning(name, `${path} can be read by other users`, `Run: chmod 600 ${path}`);
}

/** Checks how much space is left for the data directory. */
export function checkDisk(dataDir: string): Finding {
  const place = firstExisting(dataDir);
  const { bavail, bsize } = statfsSync(place);
  const free = bavail * bsize;
  const shown = `${(free / MIB / 1024).toFixed(1)} GiB free at ${place}`;
  if (free < TOO_LITTLE_BYTES)
    return problem('disk', shown, 'Free some disk space: the server stops when it cannot write.');
  return free < LITTLE_BYTES ? warning('disk', shown, 'Free some disk space soon.') : ok('disk', shown);
}

/** Checks that the server can listen on its port. A port in use is fine if the data directory is in use as well. */
export async function checkPort({ host, port, dataDir }: Config): Promise<Finding> {
  const shown = `${host}:${port}`;
  if (port === 0) return ok('port', 'the system chooses a free one at each start');
  const code = await new Promise<string | undefined>((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen(port, host, () => server.close(() => resolve(undefined)));
  });
  if (code === undefined) return ok('port', `${shown} is free`);
  if (code === 'EADDRINUSE') {
    const isOurs = existsSync(dataDir) && (await DataDirectory.isClaimed(dataDir));
    if (isOurs) return ok('port', `${shown} is in use, as is the data directory: the server is running`);
    const advice = 'Set TROUPE_PORT to another port, or stop the program that uses this one.';
    return problem('port', `${shown} is in use by another program`, advice);
  }
  const advice = 'Set TROUPE_HOST and TROUPE_PORT to an address and a port that this user may listen on.';
  return problem('port', `the server cannot listen on ${shown}: ${code}`, advice);
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function firstExisting(path: string): string {
  return existsSync(path) ? path : firstExisting(dirname(path));
}
