/** The data directory, what lies in it, and the port: what two servers would quarrel over. */
import { accessSync, constants, existsSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname } from 'node:path';
import type { Config } from '#src/config.ts';
import { DataDirectory } from '#storage/data-directory.ts';
import { type Finding, messageOf, ok, problem, warning } from './finding.ts';

const MIB = 1024 * 1024;
const LITTLE_BYTES = 1024 * MIB;
const TOO_LITTLE_BYTES = 100 * MIB;

export async function checkDataDirectory(path: string): Promise<Finding[]> {
  const [name, lock] = ['data directory', 'data directory lock'];
  if (!existsSync(path)) {
    const parent = firstExisting(path);
    if (isWritable(parent)) return [ok(name, `${path} is made at the first start`)];
    const advice = `Make ${parent} writable, or set TROUPE_DATA_DIR.`;
    return [problem(name, `${path} cannot be made: ${parent} is not writable`, advice)];
  }
  const { mode } = statSync(path);
  const shown = `${path}, mode ${(mode & 0o777).toString(8)}`;
  const rights = !isWritable(path)
    ? problem(name, `${shown}, is not writable`, `Give ${path} to the user that runs the server.`)
    : (mode & 0o077) !== 0
      ? warning(
          name,
          `${shown}, is open to others`,
          'The server closes it at its start: chmod 700 does, too.',
        )
      : ok(name, shown);
  const isHeld = await DataDirectory.isClaimed(path);
  return [rights, ok(lock, isHeld ? 'held by a server that is running' : 'free')];
}

export function checkKeyring(path: string): Finding {
  const name = 'keyring';
  if (!existsSync(path)) return ok(name, `${path} is made when it is needed`);
  try {
    const { active } = { active: undefined, ...Object(JSON.parse(readFileSync(path, 'utf8'))) };
    if (typeof active !== 'string') throw new Error('it names no active key');
  } catch (error) {
    const why = error instanceof SyntaxError ? 'it is not JSON' : messageOf(error);
    return problem(name, `${path} cannot be used: ${why}`, 'Restore it from its backup.');
  }
  if ((statSync(path).mode & 0o077) === 0) return ok(name, path);
  return warning(name, `${path} is readable by others`, `chmod 600 ${path}`);
}

export function checkDisk(dataDir: string): Finding {
  const place = firstExisting(dataDir);
  const { bavail, bsize } = statfsSync(place);
  const free = bavail * bsize;
  const shown = `${(free / MIB / 1024).toFixed(1)} GiB free at ${place}`;
  if (free < TOO_LITTLE_BYTES) return problem('disk', shown, 'Make room: a server that cannot write stops.');
  return free < LITTLE_BYTES ? warning('disk', shown, 'Make room soon.') : ok('disk', shown);
}

/** That it is taken is as it should be when the server of this data directory runs. */
export async function checkPort({ host, port, dataDir }: Config): Promise<Finding> {
  const shown = `${host}:${port}`;
  if (port === 0) return ok('port', 'a free one at each start');
  const code = await new Promise<string | undefined>((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen(port, host, () => server.close(() => resolve(undefined)));
  });
  if (code === undefined) return ok('port', `${shown} is free`);
  if (code === 'EADDRINUSE') {
    const isOurs = existsSync(dataDir) && (await DataDirectory.isClaimed(dataDir));
    if (isOurs) return ok('port', `${shown} is in use, and so is the data directory`);
    const advice = 'Set TROUPE_PORT to another one, or end what listens there.';
    return problem('port', `${shown} is in use by another program`, advice);
  }
  const advice = 'Set TROUPE_HOST and TROUPE_PORT to what this machine and user may listen on.';
  return problem('port', `${shown} cannot be listened on: ${code}`, advice);
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false; // which is the answer
  }
}

function firstExisting(path: string): string {
  return existsSync(path) ? path : firstExisting(dirname(path));
}
