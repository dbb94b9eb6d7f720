/** Problems for the operator that do not stop the server. Alert rules name each kind (`deploy/prometheus-alerts.yml`). */
export const WARNING_KINDS = [
  'read_only',
  'disk_low',
  'disk_full',
  'inodes_low',
  'store_slow',
  'backup_failed',
  'backup_silent',
  'clock_ahead',
  'audit_not_forwarded',
  'records_damaged',
  'commit_lost',
  'workers_missing',
  'primary_silent',
  'nodes_missing',
  'node_refused',
  'nodes_not_started',
] as const;

export type WarningKind = (typeof WARNING_KINDS)[number];

export interface OperatorWarning {
  readonly kind: WarningKind;
  /** One or two sentences: the problem, and the solution. */
  readonly text: string;
}
