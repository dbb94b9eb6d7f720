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
      'Days after its submission at which a run is deleted, with its output and its assets, once it has ended. 0: never.',
  }),
  keepOutputsDays: setting({
    env: 'TROUPE_KEEP_OUTPUTS_DAYS',
    kind: days,
    default: '0',
    unit: 'days',
    description:
      'Days after which the output and the assets of a run are deleted. The run itself, and the last outputs of the cells in the notebook, are kept. 0: never.',
  }),
  keepVersionsDays: setting({
    env: 'TROUPE_KEEP_VERSIONS_DAYS',
    kind: days,
    default: '0',
    unit: 'days',
    description:
      'Days after which an earlier version of a notebook is deleted, counted from the change that replaced the version. With any value, ' +
      'a notebook has at most its last 100 versions. 0: never.',
  }),
  keepDeliveriesDays: setting({
    env: 'TROUPE_KEEP_DELIVERIES_DAYS',
    kind: days,
    default: '0',
    unit: 'days',
    description:
      'Days after its end at which a delivery of a hook is deleted. With any value, a hook has at most its last 1,000 deliveries. 0: never.',
  }),
  keepAuditDays: setting({
    env: 'TROUPE_KEEP_AUDIT_DAYS',
    kind: days,
    default: '0',
    unit: 'days',
    description: 'Days after which entries of the audit are deleted. 0: never.',
  }),
} as const;
