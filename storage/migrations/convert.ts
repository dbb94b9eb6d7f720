/** Reads a store from end to end to write something for every record of a kind, as most migrations do. */
import type { RecordKind } from '../codec.ts';
import type { Entry } from '../committed-records.ts';
import { userWorkspaces } from '../identity.ts';
import { SYSTEM } from '../keys.ts';
import type { Store } from '../store.ts';
import type { Transaction } from '../transaction.ts';

/** Records that are converted in one commit. */
const BATCH = 500;

/** Calls `convert` with every record under a prefix, a batch for each commit. */
export async function convertAll<T>(
  store: Store,
  kind: RecordKind<T>,
  workspaceId: string,
  prefix: readonly string[],
  convert: (tx: Transaction, entry: Entry<T>) => void,
): Promise<void> {
  for (let after: string | undefined; ; ) {
    const batch = [...store.list(kind, workspaceId, prefix, { after, limit: BATCH })];
    store.write((tx) => {
      for (const entry of batch) convert(tx, entry);
    });
    await store.durable();
    after = batch.at(-1)?.id;
    if (batch.length < BATCH) return;
  }
}

/** Yields every workspace that has a member. */
export function* workspacesOf(store: Store): Generator<string> {
  const seen = new Set<string>();
  for (const [, workspaceId] of store.listKeys(userWorkspaces, SYSTEM, [], Number.MAX_SAFE_INTEGER)) {
    if (workspaceId === undefined || seen.has(workspaceId)) continue;
    seen.add(workspaceId);
    yield workspaceId;
  }
}
