/** Keeps the secrets of this process from other programs of the same user. */
import { findExposingLauncher } from '#src/core/launcher.ts';
import type { Log } from '#src/core/log.ts';
import type { Secret } from '#src/core/secret.ts';
import { becomeUndumpable } from '#src/core/undumpable.ts';

/** Makes the memory of this process unreadable for other programs, and logs what this machine does not allow. */
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
