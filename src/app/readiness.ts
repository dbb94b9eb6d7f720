import type { Cluster } from '#src/cluster/cluster.ts';
import type { KernelHostState } from '#src/kernel/kernel-host.ts';
import type { Readiness } from '#src/wire/operations.ts';

export interface ReadinessFacts {
  /** Load balancers are to send nothing new any more. */
  readonly isLeaving: boolean;
  readonly host: { readonly state: KernelHostState };
  readonly cluster: Pick<Cluster, 'living' | 'size' | 'isPrimarySilent'>;
  /** What an operator should know of the store. */
  readonly warnings: readonly string[];
}

const SILENT_PRIMARY =
  'The primary process does not respond: no kernel starts, and no worker that ends is replaced. Let it go on (SIGCONT), or restart the server.';

/** Returns whether requests may be sent to the server, and why not. */
export function readinessOf({ isLeaving, host, cluster, warnings }: ReadinessFacts): Readiness {
  if (isLeaving) return { ready: false, reason: 'The server is stopping.' };
  if (host.state === 'silent') return { ready: false, reason: 'The kernel host does not respond.' };
  if (host.state !== 'up') return { ready: false, reason: `The kernel host is ${host.state}.` };
  const { living, size, isPrimarySilent } = cluster;
  const missing = living < size ? [`${living} of ${size} workers serve; the others are being replaced.`] : [];
  const found = [...warnings, ...missing, ...(isPrimarySilent ? [SILENT_PRIMARY] : [])];
  return { ready: true, ...(found.length > 0 && { warnings: found }) };
}
