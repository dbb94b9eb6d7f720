/** Keeps the secrets of this process, and of its clients, from other programs of this machine. */

import type { Log } from '#src/core/log.ts';
import type { Secret } from '#src/core/secret.ts';
import { findExposingLauncher } from '#src/os/launcher.ts';
import { holdOtherFamily } from '#src/os/listening-socket.ts';
import { becomeUndumpable } from '#src/os/undumpable.ts';

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
 * Keeps a port of this server at the addresses that clients may take for its own (`localhost`), and warns of those that another
 * program has.
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
