import { integer } from './kinds.ts';
import { setting } from './setting.ts';

const days = integer(0, 36_500);

/** How long records are kept; without these settings they stay until they are deleted. In the order of the documentation. */
export const RETENTION_SETTINGS = {
  keepRunsDays: setting({
    env: 'TROUPE_KEEP_RUNS_DAYS',
    kind: days,
    default: '0',
    unit: 'days',
    description:
      'Days after which a run that has ended is deleted, with its output and its assets, counted from its submission. 0: never.',
  }),
  keepOutputsDays: setting({
    env: 'TROUPE_KEEP_OUTPUTS_DAYS',
    kind: days,
    default: '0',
    unit: 'days',
    description:
      'Days after which the output of a run is deleted, with its assets; the run and the last outputs of cells are kept. 0: never.',
  }),
  keepVersionsDays: setting({
    env: 'TROUPE_KEEP_VERSIONS_DAYS',
    kind: days,
    default: '0',
    unit: 'days',
    description:
      'Days after which an earlier version of a notebook is deleted, counted from the change that replaced it. The last 100 of each ' +
      'notebook are kept. 0: never.',
  }),
  keepAuditDays: setting({
    env: 'TROUPE_KEEP_AUDIT_DAYS',
    kind: days,
    default: '0',
    unit: 'days',
    description: 'Days after which entries of the audit are deleted. 0: never.',
  }),
} as const;
