/** Two HTTP servers with routes of their own, in this process, that forward requests to each other as workers do. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Auth } from '#src/base/caller/principal.ts';
import { AppError } from '#src/base/errors/errors.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import { bindListener } from '#src/base/os/listening-socket.ts';
import { Peers } from '#src/cluster/peers/peers.ts';
import type { Forwarding } from '#src/http/edge/http-context.ts';
import { OpenRequests } from '#src/http/edge/open-requests.ts';
import type { Route } from '#src/http/route.ts';
import { createServer, type Server, type ServerOptions } from '#src/http/server.ts';
import type { Heartbeats } from '#src/runtime/events/heartbeats.ts';
import { MirroredStream } from '#src/runtime/events/mirrored-stream.ts';
import { dealSlots, type Home, type SlotTable, slotOf, withSlots } from '#src/runtime/homes/slots.ts';
import { httpDefaults } from '#test/http/http-defaults.ts';
import { auth, principal } from '../http/test-server.ts';

/** Every user is in every workspace. */
export const everywhere: Auth = {
  ...auth,
  authenticate(authorization, workspaceId) {
    if (authorization !== 'Bearer good') throw new AppError('unauthenticated', 'Send a valid token.');
    return { ...principal, workspaceId: workspaceId as WorkspaceId };
  },
};

export interface TwoWorkers {
  readonly servers: readonly [Server, Server];
  readonly peers: readonly [Peers, Peers];
  /** The folder of their sockets. */
  readonly folder: string;
  /** The streams that were mirrored in either worker, in order. */
  readonly mirrors: readonly MirroredStream[];
  /** The errors of the handlers of questions, in order. */
  readonly faults: readonly { readonly topic: string; readonly error: unknown }[];
  /**
   * Returns a workspace that is at home in the first or the second worker, or whose notebook or conversation
   * `id` is.
   */
  workspaceIn(worker: 0 | 1, id?: string): string;
  /** Returns a notebook of the workspace that is at home in the first or the second worker. */
  notebookIn(worker: 0 | 1, workspaceId: string): string;
  /** Returns the homes of a worker's open requests and streams. */
  busyHomes(worker: 0 | 1): readonly Home[];
  /** Gives all slots to a worker. Only the named workers are notified. */
  giveAllTo(worker: 0 | 1, known?: readonly (0 | 1)[]): void;
}

/** Works as `slotOf`, but notebooks have slots of their own. */
const ownSlotOf = (workspaceId: string, id?: string) =>
  slotOf(id === undefined ? workspaceId : `${workspaceId}/${id}`);

/** The tickets of a worker name it. */
const ownerOfTicket = (ticket: string) => Number(ticket.slice('ticket-of-'.length));

/** The view of the second worker that the first worker has. */
interface Reached extends Pick<TwoWorkers, 'workspaceIn'> {
  readonly first: Server;
  /** The requests and streams of the second worker. */
  readonly open: OpenRequests;
}

interface TwoWorkersOptions extends Partial<ServerOptions> {
  /** The limit of a subscriber's lag, for the mirrored streams. */
  readonly limitBytes?: number;
  readonly heartbeats?: Heartbeats;
  /** Called before the second worker listens for clients. */
  readonly beforeListening?: (reached: Reached) => Promise<void>;
}

/** `routesOf` returns the routes of each worker. Both workers are closed when the test ends. */
export async function startTwoWorkers(
  t: TestContext,
  routesOf: (worker: number) => readonly Route[],
  { limitBytes = 1024 * 1024, heartbeats, beforeListening, ...options }: TwoWorkersOptions = {},
): Promise<TwoWorkers> {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-peers-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const mirrors: MirroredStream[] = [];
  const faults: { readonly topic: string; readonly error: unknown }[] = [];
  let table: SlotTable = dealSlots([0, 1]);
  const workspaceIn: TwoWorkers['workspaceIn'] = (worker, id) => {
    for (let n = 0; ; n++) if (table.owners[ownSlotOf(`ws_${n}`, id)] === worker) return `ws_${n}`;
  };
  const start = async (worker: number, first?: Server) => {
    const membership = {
      worker,
      size: 2,
      secret: Buffer.alloc(32, 'secret'),
      table,
      isPrimarySilent: false,
      socketPath: (number: number) => join(folder, `peer-${number}.sock`),
    };
    const peers = new Peers(membership, (topic, error) => faults.push({ topic, error }));
    peers.onFeed((head, press) => {
      const mirror = new MirroredStream(
        head,
        { limitBytes, heartbeats, budget: undefined, onCutOff: undefined },
        press,
      );
      mirrors.push(mirror);
      return mirror;
    });
    const elsewhere = (slot: number) => (peers.ownsSlot(slot) ? undefined : slot);
    const log = {
      error: (fields: object, message: string) => t.diagnostic(`${message} ${JSON.stringify(fields)}`),
    };
    const open = new OpenRequests(log);
    let busyHomes: () => Iterable<Home> = () => [];
    const forwarding: Forwarding = {
      refresh: () => {},
      elsewhere: (workspaceId, id) => elsewhere(ownSlotOf(workspaceId, id)),
      elsewhereByTicket: (ticket) => elsewhere(table.owners.indexOf(ownerOfTicket(ticket))),
      forward: (head, body, events) => peers.forward(head, body, events),
      async join(handle, busy) {
        busyHomes = busy;
        await peers.listen(handle);
        if (first !== undefined) await beforeListening?.({ first, open, workspaceIn });
        return bindListener('127.0.0.1', 0);
      },
    };
    const server = await createServer({
      ...httpDefaults(log),
      routes: routesOf(worker),
      auth: everywhere,
      open,
      forwarding,
      ...options,
    });
    t.after(async () => {
      await server.close(0);
      peers[Symbol.dispose]();
    });
    return { server, peers, busyHomes: () => [...busyHomes()] };
  };
  const first = await start(0);
  const workers = [first, await start(1, first.server)] as const;
  return {
    servers: [workers[0].server, workers[1].server],
    peers: [workers[0].peers, workers[1].peers],
    folder,
    mirrors,
    faults,
    workspaceIn,
    notebookIn(worker, workspaceId) {
      for (let n = 0; ; n++) if (table.owners[ownSlotOf(workspaceId, `nb_${n}`)] === worker) return `nb_${n}`;
    },
    busyHomes: (worker) => workers[worker].busyHomes(),
    giveAllTo(worker, known = [0, 1]) {
      table = withSlots(
        table,
        table.owners.map((_, slot) => slot),
        worker,
      );
      for (const one of known) workers[one].peers.useTable(table);
    },
  };
}
