/** A kernel node: this machine runs kernels for a server on another one. */

import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import { onUnawaitedFault, UNAWAITED_FAULT, unawaited } from '#src/base/async/unawaited.ts';
import type { Config } from '#src/base/config/config.ts';
import type { RootLog } from '#src/base/log/log.ts';
import { notifyServiceManager } from '#src/base/os/service-notice.ts';
import { enrol } from '#src/confined/nodes/host/enrol.ts';
import { memoryOfMachine } from '#src/confined/nodes/host/memory.ts';
import { type NodeEnd, NodeHost } from '#src/confined/nodes/host/node-host.ts';
import { StateFolder, type StoredMembership } from '#src/confined/nodes/host/state-folder.ts';
import { parseInvitation, parseNodeAddress } from '#src/confined/nodes/invitation.ts';
import { readNodeSecret } from '#src/confined/nodes/node-secret.ts';
import { KernelSampler } from '#src/operate/operators/kernel-usage.ts';
import { DataDirectory } from '#storage/disk/data-directory.ts';
import { writePrivateFile } from '#storage/disk/private-file.ts';
import { hostMaker } from '../app/prerequisites.ts';
import type { ProcessContext } from '../app/process-context.ts';
import { say } from './announce.ts';
import { protectMemory } from './protect.ts';

/** The memory for which a node takes one kernel, unless the settings say how many. */
const BYTES_PER_KERNEL = 280 * 2 ** 20;
const PAUSES_MS = [200, 500, 1000, 2500, 5000];
/** A refusal does not go away by itself, so the server is asked again only seldom. */
const REFUSED_PAUSE_MS = 15_000;

export interface NodeArguments {
  /** `HOST:PORT#CODE`, or `HOST:PORT` with a secret. Absent when the machine has enrolled before. */
  readonly invitation?: string | undefined;
  /** The file of the secret that admits machines without an invitation. */
  readonly secretFile?: string | undefined;
  /** The name of the node; absent: the name of the machine. */
  readonly name?: string | undefined;
  /** Whether to end when the server is lost, because something else starts this program again. */
  readonly once?: boolean | undefined;
}

/** Resolves with an exit code once the node was told to end. Rejects with one line when this machine cannot be a node. */
export async function serveAsNode(
  { config, log }: { readonly config: Config; readonly log: RootLog },
  given: NodeArguments,
): Promise<number> {
  const directory = await DataDirectory.claim(config.nodeDir, () => undefined);
  const stop = new AbortController();
  using _faults = onUnawaitedFault((err, place) => log.error({ err, place }, UNAWAITED_FAULT));
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => stop.abort());
  try {
    const state = new StateFolder(directory.root, writePrivateFile);
    const invited = given.invitation ?? config.nodeInvitation?.reveal();
    let membership = await findMembership(state, { ...given, invitation: invited });
    await protectMemory(log);
    say(`This machine is the kernel node ${membership.name} of ${membership.host}:${membership.port}`);
    for (let failures = 0; !stop.signal.aborted; failures++) {
      const node = makeNode({ config, log, directory }, membership, (renewed) => {
        membership = renewed;
        if (given.secretFile === undefined) state.write(renewed);
        log.info({ node: renewed.name }, 'the certificate of this node was renewed');
      });
      const end = await node.live(stop.signal);
      if (stop.signal.aborted) break;
      log.warn(
        { reason: end.reason, kind: end.kind },
        'this node has lost its server, and all its kernels have ended',
      );
      say(`troupe: ${sentence(end)}`);
      if (given.once === true) return 3;
      if (end.hadJoined) failures = 0;
      await pause(pauseOf(end, failures), stop.signal);
      if (given.secretFile !== undefined && !stop.signal.aborted)
        membership = await enrolAgain(given, membership, log);
    }
    return 0;
  } finally {
    directory[Symbol.dispose]();
  }
}

function sentence({ kind, reason }: NodeEnd): string {
  if (kind === 'refused') return `The server refuses this node: ${reason}`;
  return `The server is lost (${reason}); trying again.`;
}

function pauseOf({ kind }: NodeEnd, failures: number): number {
  const longest = PAUSES_MS[Math.min(failures, PAUSES_MS.length - 1)] ?? REFUSED_PAUSE_MS;
  return kind === 'refused' ? REFUSED_PAUSE_MS : longest;
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/**
 * Resolves with the membership of this machine. An invitation works once, and a unit or a script gives it again at each start: the one
 * that made the present membership is not tried again, and another one that is refused leaves the membership as it is.
 */
async function findMembership(state: StateFolder, given: NodeArguments): Promise<StoredMembership> {
  const { invitation: text, name } = given;
  if (given.secretFile !== undefined) return enrolWithSecret(given);
  const known = state.read();
  if (text === undefined) {
    if (known !== undefined) return known;
    throw new Error(
      'This machine is no kernel node yet: give it an invitation, which `troupe nodes invite` prints on the server.',
    );
  }
  const invitation = parseInvitation(text);
  if (invitation === undefined)
    throw new Error('This is no invitation. It looks like HOST:PORT#CODE; `troupe nodes invite` prints one.');
  const digest = createHash('sha256').update(text).digest('hex');
  if (known?.invitation === digest) return known;
  try {
    const { membership, isTemporary } = await enrol(invitation, name ?? hostname());
    if (!isTemporary) state.write({ ...membership, invitation: digest });
    return { ...membership, invitation: digest };
  } catch (error) {
    if (known === undefined) throw error;
    say(
      `troupe: This invitation is of no use (${(error as Error).message}), so the earlier membership is used.`,
    );
    return known;
  }
}

/** Gets a certificate for one connection. The secret is read again each time, because an operator may have replaced it. */
async function enrolWithSecret({
  invitation,
  secretFile = '',
  name,
}: NodeArguments): Promise<StoredMembership> {
  const address = parseNodeAddress(invitation ?? '');
  if (address === undefined)
    throw new Error('With --secret-file, the argument is the address of the server: HOST:PORT.');
  const { membership } = await enrol({ ...address, ...readNodeSecret(secretFile) }, name ?? hostname());
  return membership;
}

/** Returns the present membership when the server cannot be asked now. */
async function enrolAgain(
  given: NodeArguments,
  present: StoredMembership,
  log: RootLog,
): Promise<StoredMembership> {
  try {
    return await enrolWithSecret(given);
  } catch (error) {
    log.warn({ reason: (error as Error).message }, 'this node could not enrol again');
    return present;
  }
}

function makeNode(
  { config, log, directory }: ProcessContext,
  membership: StoredMembership,
  renewed: (membership: StoredMembership) => void,
): NodeHost {
  const makeHost = hostMaker({
    config: { ...config, kernelNetwork: config.nodeKernelNetwork },
    log,
    directory,
    runDir: directory.runPath,
  });
  let pids: readonly number[] = [];
  const sampler = new KernelSampler(() =>
    pids.map((pid) => ({ workspaceId: '', sessionId: '', pid, node: null })),
  );
  unawaited(
    notifyServiceManager({ READY: 1, STATUS: `Kernel node of ${membership.host}.` }),
    'serve-as-node: the notice to the service manager',
  );
  return new NodeHost({
    membership,
    makeHost: (preload, parts) => makeHost(preload && config.preload, parts),
    capacity: config.nodeSessions || Math.max(1, Math.floor(memoryOfMachine() / BYTES_PER_KERNEL)),
    log,
    renewed: (certificate) => renewed({ ...membership, certificate }),
    async useOf(asked) {
      pids = asked;
      const { kernels } = await sampler.sample();
      return kernels.map(({ pid, cpuSeconds, memoryBytes }) => ({ pid, cpuSeconds, memoryBytes }));
    },
  });
}
