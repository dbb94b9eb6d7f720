/**
 * Replaces `storage/migrations.ts` under `--conditions=development`. With `NEXT_FORMAT=1` the process is an invented next
 * release: it converts stores of the present format to one in which the runs of each notebook and conversation are counted.
 */
import { defineRecord } from '../../storage/codec.ts';
import { type Pass, passOver, workspacesOf } from '../../storage/migrations/conversion.ts';
import { CURRENT_FORMAT as SHIPPED, type StoreFormat } from '../../storage/migrations.ts';
import { runRecords } from '../../storage/records/runs.ts';
import type { Store } from '../../storage/store.ts';

/** The bytes of a run's document. They exist only during the conversion. Key: workspace id, session id, run id. */
export const measuredRuns = defineRecord<Uint8Array>('measured-run', 1);
/** Runs, and the bytes of their documents. Key: workspace id, session id. */
export const runCounts = defineRecord<{ readonly runs: number; readonly bytes: number }>('run-count', 1);

/** A run that were converted twice would be counted twice. */
export function* countRuns(store: Store): Generator<Pass<unknown>> {
  for (const workspaceId of workspacesOf(store)) {
    yield passOver(runRecords, workspaceId, [], (tx, { sessionId, document }, [id = '']) =>
      tx.put(measuredRuns, document, workspaceId, sessionId, id),
    );
    yield passOver(measuredRuns, workspaceId, [], (tx, { byteLength }, [sessionId = '']) => {
      const { runs, bytes } = tx.get(runCounts, workspaceId, sessionId) ?? { runs: 0, bytes: 0 };
      tx.put(runCounts, { runs: runs + 1, bytes: bytes + byteLength }, workspaceId, sessionId);
    });
    yield {
      kind: measuredRuns,
      partition: workspaceId,
      keysOnly: true,
      convert: (tx, { ids }) => tx.remove(measuredRuns, workspaceId, ...ids),
    };
  }
}

const NEXT: StoreFormat = { version: SHIPPED.version + 1, migrations: [...SHIPPED.migrations, countRuns] };
const present = () => (process.env.NEXT_FORMAT === '1' ? NEXT : SHIPPED);

/** The variable is read at each use, so a test can become the next release after it has imported this module. */
export const CURRENT_FORMAT: StoreFormat = {
  get version() {
    return present().version;
  },
  get migrations() {
    return present().migrations;
  },
};
