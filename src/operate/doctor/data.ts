/** Checks of the data directory, of the files in it, of the disk and of the port. */
import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Config } from '#src/base/config/config.ts';
import { OperatorError } from '#src/base/errors/operator-error.ts';
import { explainListening, probeListening } from '#src/base/net/listen-failure.ts';
import { readKeyring } from '#src/datasource/keys/keyring.ts';
import { requireFittingKeyring } from '#src/datasource/keys/keyring-store.ts';
import { DataDirectory } from '#storage/disk/data-directory.ts';
import {
  DATA_FILE,
  isUnfinished,
  requireExpectedStore,
  requireNoUnfinishedRestore,
} from '#storage/disk/store-folder.ts';
import { SYSTEM } from '#storage/keys.ts';
import { openStoreReader, type StoreReader } from '#storage/open-store.ts';
import { keyChecks } from '#storage/records/datasources.ts';
import { type Finding, fine, messageOf, problem, warning } from './finding.ts';

const MIB = 1024 * 1024;

/**
 * Checks that the data directory is private and can be written, and whether a server is using it.
 */
export async function checkDataDirectory({
  dataDir: path,
  readOnly,
}: Pick<Config, 'dataDir' | 'readOnly'>): Promise<Finding[]> {
  const [name, lock] = ['data directory', 'data directory lock'];
  if (!existsSync(path)) {
    const parent = firstExisting(path);
    if (isWritable(parent)) return [fine(name, `${path} will be created at the first start`)];
    const advice = `Make ${parent} writable, or set TROUPE_DATA_DIR.`;
    return [problem(name, `${path} cannot be created: ${parent} is not writable`, advice)];
  }
  const { mode, uid } = statSync(path);
  if (isClosed(path))
    return [
      problem(
        name,
        `${path} belongs to the user ${uid}, and the present user cannot read it`,
        'Run this command as the user that runs the server (runuser -u USER -- troupe doctor).',
      ),
    ];
  const shown = `${path}, mode ${(mode & 0o777).toString(8)}`;
  if (readOnly && !isWritable(path))
    return [
      fine(name, `${shown}, cannot be written; a server with TROUPE_READ_ONLY does not need to write it`),
    ];
  const rights = !isWritable(path)
    ? problem(name, `${shown}, is not writable`, `Make ${path} writable for the user that runs the server.`)
    : (mode & 0o077) !== 0
      ? warning(
          name,
          `${shown}, can be accessed by other users`,
          `The next start of the server corrects this; or run: chmod 700 ${path}`,
        )
      : fine(name, shown);
  const isHeld = await DataDirectory.isClaimed(path);
  return [rights, fine(lock, isHeld ? 'held by a running server' : 'free')];
}

/**
 * Checks that the store and the keyring can be used, and that they belong together. A server may be using them. Returns nothing
 * where this user cannot see them.
 */
export async function checkStoreAndKeyring({ dataDir, keyringFile, newStore }: Config): Promise<Finding[]> {
  if (isClosed(dataDir)) return [];
  const path = join(dataDir, 'store');
  if (!existsSync(join(path, DATA_FILE)) || isUnfinished(dataDir, keyringFile)) {
    const keyring = existsSync(keyringFile)
      ? () => describeKeyring(keyringFile)
      : () => fine('keyring', `${keyringFile} will be created when it is needed`);
    return [
      finding('store', () => {
        requireNoUnfinishedRestore(dataDir);
        if (!newStore && existsSync(dataDir)) requireExpectedStore(dataDir, keyringFile);
        return fine('store', `${path} will be created at the first start`);
      }),
      finding('keyring', keyring),
    ];
  }
  let store: StoreReader;
  try {
    store = await openStoreReader(path);
  } catch (error) {
    return [failed('store', error), finding('keyring', () => describeKeyring(keyringFile))];
  }
  await using opened = store;
  const megabytes = (statSync(join(path, DATA_FILE)).size / MIB).toFixed(1);
  return [
    fine('store', `${path}, ${megabytes} MiB, can be read`),
    finding('keyring', () => {
      const [isNeeded] = opened.listKeys(keyChecks, SYSTEM, [], 1);
      if (isNeeded === undefined && !existsSync(keyringFile))
        return fine('keyring', `${keyringFile} will be created when it is needed`);
      requireFittingKeyring(opened, keyringFile, readKeyring(keyringFile));
      return describeKeyring(keyringFile);
    }),
  ];
}

function describeKeyring(path: string): Finding {
  readKeyring(path);
  if ((statSync(path).mode & 0o077) === 0) return fine('keyring', path);
  return warning('keyring', `${path} can be read by other users`, `Run: chmod 600 ${path}`);
}

function finding(check: string, examine: () => Finding): Finding {
  try {
    return examine();
  } catch (error) {
    return failed(check, error);
  }
}

function failed(check: string, error: unknown): Finding {
  if (error instanceof OperatorError) return problem(check, error.problem, error.advice);
  return problem(check, messageOf(error), 'Restore the latest backup (troupe restore).');
}

/** Checks how much space is left for the data directory, in addition to the server's reserve. */
export function checkDisk({ dataDir, diskReserveMb, diskWarnMb }: Config): Finding {
  const place = firstExisting(dataDir);
  const { bavail, bsize } = statfsSync(place);
  const free = (bavail * bsize) / MIB;
  const shown = `${(free / 1024).toFixed(1)} GiB free at ${place}`;
  if (free < diskReserveMb)
    return problem(
      'disk',
      shown,
      'Free some disk space: the server accepts nothing new when the disk is full.',
    );
  return free < diskWarnMb ? warning('disk', shown, 'Free some disk space soon.') : fine('disk', shown);
}

/** Checks that the server can listen on its port. A port in use is fine if the data directory is in use as well. */
export async function checkPort({ host, port, dataDir, readOnly }: Config): Promise<Finding> {
  const shown = `${host}:${port}`;
  if (port === 0) return fine('port', 'the system chooses a free one at each start');
  const code = await probeListening(host, port);
  if (code === undefined) return fine('port', `${shown} is free`);
  if (code === 'EADDRINUSE' && isClosed(dataDir))
    return warning(
      'port',
      `${shown} is in use, but this user cannot see whether the server uses it`,
      'Run this command as the user that runs the server.',
    );
  if (code === 'EADDRINUSE' && existsSync(dataDir) && (await DataDirectory.isClaimed(dataDir)))
    return fine('port', `${shown} is in use, as is the data directory: the server is running`);
  if (code === 'EADDRINUSE' && readOnly && existsSync(dataDir) && !isWritable(dataDir))
    return warning(
      'port',
      `${shown} is in use, perhaps by this server: one that only reads leaves no lock in the data directory`,
      'If the check of the server finds it ready, the server uses the port.',
    );
  const { why, advice } = explainListening(code, { host, port });
  return problem('port', `the server cannot listen on ${shown}: ${why}`, advice);
}

function isWritable(path: string): boolean {
  return allows(path, constants.W_OK | constants.X_OK);
}

/**
 * Returns whether a directory exists that this user cannot read. Everything in it then seems to be
 * missing.
 */
function isClosed(path: string): boolean {
  return existsSync(path) && !allows(path, constants.R_OK | constants.X_OK);
}

function allows(path: string, access: number): boolean {
  try {
    accessSync(path, access);
    return true;
  } catch {
    return false;
  }
}

/** Returns the path itself, or the first folder above it that exists. */
export function firstExisting(path: string): string {
  return existsSync(path) ? path : firstExisting(dirname(path));
}
