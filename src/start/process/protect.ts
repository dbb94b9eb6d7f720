/** Keeps the secrets of this process, and of its clients, from other programs of this machine. */

import { readFileSync } from 'node:fs';
import type { Secret } from '#src/base/caller/secret.ts';
import type { Config } from '#src/base/config/config.ts';
import type { Log } from '#src/base/log/log.ts';
import { entriesOfThisMachine } from '#src/base/net/own-addresses.ts';
import { holdOtherFamily } from '#src/base/os/listening-socket.ts';
import { becomeUndumpable } from '#src/base/os/prctl.ts';
import { sharesNetwork } from '../app/proxy-socket.ts';

/** Makes the memory of this process unreadable for other programs, and logs the protections that this machine lacks. */
export async function protectMemory(log: Log): Promise<void> {
  const dumpableBecause = await becomeUndumpable();
  if (dumpableBecause !== undefined)
    log.warn({ because: dumpableBecause }, 'programs of the same user can read the memory of this server');
}

/** Warns when the process that has started this one shows its keys to others. */
export function warnOfLauncher(log: Log, secrets: readonly Secret[]): void {
  const launcher = findExposingLauncher(secrets);
  if (launcher !== undefined)
    log.warn(
      { launcher },
      'programs of the same user can read the keys of this server in the environment of the process that started it: keep them in troupe.config.json, or start the server with `exec node src/setup/start.mjs`',
    );
}

/**
 * Occupies a port of this server at the addresses that clients may take for its own (`localhost`),
 * and warns of those that another program has.
 */
export async function holdLocalhost(log: Log, host: string, port: number): Promise<void> {
  if (process.platform !== 'linux') return;
  const taken = await holdOtherFamily(host, port);
  if (taken.length > 0)
    log.warn(
      { port, taken },
      'another program has the port of this server at another address of this machine: clients that connect to `localhost` may send it their tokens. Stop that program, or tell clients the address of this server',
    );
}

/** Warns when the settings trust addresses of this machine from which notebook code can connect, too. */
export function warnOfSharedAddresses(log: Log, config: Config): void {
  const distrusted = sharesNetwork(config) ? entriesOfThisMachine(config.trustedProxies) : [];
  if (distrusted.length > 0)
    log.warn(
      { distrusted },
      'TROUPE_TRUSTED_PROXIES names addresses of this machine, from which notebook code connects as well, so proxies there are not trusted: let the proxy connect to the unix socket of TROUPE_LISTEN_SOCKET, or set TROUPE_KERNEL_NETWORK=none',
    );
}

/**
 * Returns the nearest process above this one that has one of `secrets` in an environment that other
 * programs of the same user can read, as npm has after `npm start`. Returns undefined when there is
 * none or it cannot be found out.
 */
function findExposingLauncher(
  secrets: readonly Secret[],
): { readonly pid: number; readonly name: string } | undefined {
  const values = secrets.map((secret) => `=${secret.reveal()}`);
  for (let pid = process.ppid; pid > 0; ) {
    const environment = read(pid, 'environ')?.split('\0') ?? [];
    const stat = read(pid, 'stat') ?? '';
    const nameEnd = stat.lastIndexOf(')');
    if (environment.some((entry) => values.some((value) => entry.endsWith(value))))
      return { pid, name: stat.slice(stat.indexOf('(') + 1, nameEnd) };
    pid = Number(stat.slice(nameEnd + 2).split(' ')[1] ?? 0);
  }
  return undefined;
}

function read(pid: number, file: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return undefined; // the process has ended, or its files are closed to others
  }
}
