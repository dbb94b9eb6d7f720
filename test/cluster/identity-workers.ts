/** Two workers of one server, as far as identity goes, each with a store of its own on the same files. */
import type { TestContext } from 'node:test';
import type { Principal } from '#src/base/caller/principal.ts';
import { loadConfig } from '#src/base/config/config.ts';
import { type IdentityPlane, openIdentity } from '#src/people/auth/open-identity.ts';
import type { Store } from '#storage/store.ts';
import { rememberingLog, sharedStore, temporaryStore } from '#test/support/store/temporary-store.ts';
import { type TestWorker, testCluster } from '#test/support/test-cluster.ts';

export const TOKEN = 'bootstrap-token-of-the-tests';

export interface Worker {
  readonly store: Store;
  readonly cluster: TestWorker;
  readonly identity: IdentityPlane;
  readonly enter: (token: string, workspaceId?: string) => Principal;
  /** How often this worker has checked whether callers have lost a right. */
  readonly checks: () => number;
}

/** Opens the workers; the owner of the workspace `home` has the token `TOKEN`. */
export async function openWorkers(
  t: TestContext,
  homeOf: (workspaceId: string) => number,
): Promise<[Worker, Worker]> {
  const { store, path } = await temporaryStore(t);
  const settings = {
    TROUPE_BOOTSTRAP_TOKEN: TOKEN,
    TROUPE_BOOTSTRAP_WORKSPACE: 'home',
    TROUPE_SIGN_IN_IDLE_S: '3600',
    TROUPE_SIGN_IN_MAX_S: '7200',
  };
  const { config } = loadConfig(settings, { cwd: path });
  const { log } = rememberingLog();
  const workers = testCluster(2, homeOf);
  // The primary does the same before its workers start.
  await openIdentity({ config, log, store, cluster: { ...workers[0]!, size: 1 } }, path);
  const planes = workers.map(async (cluster): Promise<Worker> => {
    const own = await sharedStore(t, path);
    const identity = await openIdentity({ config, log, store: own, cluster }, path);
    let checks = 0;
    const watch = identity.onRevocation(() => {
      checks++;
    });
    t.after(() => watch[Symbol.dispose]());
    return {
      store: own,
      cluster,
      identity,
      enter: (token, workspaceId = 'home') =>
        identity.authenticator.authenticate(`Bearer ${token}`, workspaceId),
      checks: () => checks,
    };
  });
  const [first, second] = await Promise.all(planes);
  return [first!, second!];
}

/** Returns the code of the error that `action` throws; undefined when `action` does not throw. */
export function refusalOf(action: () => unknown): string | undefined {
  try {
    action();
    return undefined;
  } catch (error) {
    return (error as { code?: string }).code;
  }
}
