import type { OperatorWarning } from '#src/base/log/operator-warning.ts';
import type { KernelHost } from '#src/confined/processes/host/kernel-host.ts';
import type { Readiness } from '#src/contract/wire/health.ts';
import type { Cluster } from '#src/runtime/homes/cluster.ts';

export interface ReadinessFacts {
  /** Load balancers must send no new requests. */
  readonly isLeaving: boolean;
  readonly host: Pick<KernelHost, 'state' | 'problem'>;
  /** Warnings for operators. */
  readonly warnings: readonly OperatorWarning[];
}

/** Returns whether requests may be sent to the server, with the reason if not. */
export function readinessOf({ isLeaving, host, warnings }: ReadinessFacts): Readiness {
  if (isLeaving) return { ready: false, reason: 'The server is stopping.' };
  if (host.state === 'silent') return { ready: false, reason: 'The kernel host does not respond.' };
  if (host.state !== 'up') return { ready: false, reason: `The kernel host is ${host.state}.` };
  if (host.problem !== null) return { ready: false, reason: host.problem };
  return { ready: true, ...(warnings.length > 0 && { warnings: warnings.map(({ text }) => text) }) };
}

/** Returns warnings about the processes of a server, for operators. */
export function clusterWarnings({
  living,
  size,
  isPrimarySilent,
}: Pick<Cluster, 'living' | 'size' | 'isPrimarySilent'>): OperatorWarning[] {
  const warnings: OperatorWarning[] = [];
  if (living < size) {
    const text = `${living} of ${size} workers serve; the others are being replaced.`;
    warnings.push({ kind: 'workers_missing', text });
  }
  if (isPrimarySilent) warnings.push({ kind: 'primary_silent', text: SILENT_PRIMARY });
  return warnings;
}

const SILENT_PRIMARY =
  'The primary process does not respond: no kernel starts, and no ended worker is replaced. Continue the process (SIGCONT), or restart the server.';
