/**
 * The kernel hosts of a lane (`test/runner/`): servers that would start equal Python processes share one. A server that stops ends its
 * own kernels only. If a test has killed the host, the next server starts it again.
 */
import { SharedZygote } from '#src/confined/processes/host/shared-zygote.ts';
import {
  type HostHello,
  type StartZygote,
  ZygoteProcess,
} from '#src/confined/processes/host/zygote-process.ts';
import { LANE } from '#test/runner/lane-state.ts';

interface LaneHost {
  readonly zygote: ZygoteProcess;
  readonly hello: HostHello;
  /** Whether a kernel has started in it, so that its next users need not look. */
  isProven: boolean;
  readonly users: Set<(isSilent: boolean) => void>;
}

/** A share of a host in which an earlier server has seen a kernel start. */
class ProvenShare extends SharedZygote {
  onProof(listener: (problem: string | null) => void): void {
    listener(null);
  }
}

const hosts = new Map<string, Promise<LaneHost>>();
LANE?.atEnd(endHosts);

/** Returns how a server of the present file starts its kernel host; undefined: as a process of its own. */
export function hostOfLane(): StartZygote | undefined {
  if (LANE === undefined) return undefined;
  LANE.guardian = undefined;
  return LANE.ownHost ? undefined : shareOfLane;
}

/** Gives a supervisor a share of the host of this lane. */
const shareOfLane: StartZygote = async (options) => {
  const { python, hostScript, env } = options;
  const key = JSON.stringify([python, hostScript, Object.entries(env).sort()]);
  let host = await hosts.get(key);
  if (host === undefined || !host.zygote.alive) {
    const started = start(options);
    hosts.set(key, started);
    started.catch(() => hosts.delete(key));
    host = await started;
  }
  const { users, hello } = host;
  users.add(options.onSilence);
  if (LANE !== undefined) LANE.guardian = host.zygote.guardian;
  const zygote = host.isProven ? new ProvenShare(host.zygote) : new SharedZygote(host.zygote);
  host.isProven = true;
  zygote.ended.then(
    () => users.delete(options.onSilence),
    () => undefined,
  );
  return { zygote, hello };
};

async function start(options: Parameters<StartZygote>[0]): Promise<LaneHost> {
  const users = new Set<(isSilent: boolean) => void>();
  const { zygote, hello } = await ZygoteProcess.start({
    ...options,
    rests: true,
    log: silent,
    onSilence: (isSilent) => {
      for (const tell of users) tell(isSilent);
    },
  });
  return { zygote, hello, users, isProven: false };
}

/** The host outlives the server that has started it, and with it that server's log. */
const silent = { info: () => {}, warn: () => {}, error: () => {} };

async function endHosts(): Promise<void> {
  for (const started of hosts.values()) {
    const host = await started.catch(() => undefined);
    host?.zygote.stop();
    await host?.zygote.ended;
  }
}
