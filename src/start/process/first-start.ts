/**
 * Opens the store for a moment, so that all workers find it ready: migrated, with a keyring, and with a first workspace when it
 * was empty.
 */

import { AsyncDisposableStack } from '#src/base/async/async-disposable-stack.ts';
import { KeyringStore } from '#src/datasource/keys/keyring-store.ts';
import type { Bootstrapped } from '#src/people/auth/bootstrap.ts';
import { openIdentity } from '#src/people/auth/open-identity.ts';
import { ALONE } from '#src/runtime/homes/cluster.ts';
import { openStorage } from '../app/open-storage.ts';
import type { ProcessContext } from '../app/process-context.ts';

/** Rejects with an error of one line when the store cannot be used. The store is closed in any case. */
export async function prepareStore({ config, directory, log }: ProcessContext): Promise<Bootstrapped> {
  const stack = new AsyncDisposableStack();
  try {
    const storage = await openStorage(
      // The workers make backups.
      {
        config: { ...config, backupDir: undefined },
        directory,
        log,
        cluster: ALONE,
        onFatal: (error) => log.fatal({ err: error }, error.message),
      },
      stack,
    );
    const identity = await openIdentity(
      { config, store: storage.store, cluster: ALONE, log },
      directory.root,
    );
    await KeyringStore.open(storage.store, config.keyringFile);
    await storage.store.durable();
    return identity.bootstrapped;
  } finally {
    await stack[Symbol.asyncDispose]();
  }
}
