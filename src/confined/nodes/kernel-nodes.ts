/**
 * The server's side of kernel nodes: machines that run kernels for it. The server listens for nodes, admits those that have a
 * certificate and the same release, gives each order for a kernel to one node, and gives up a node that it does not hear.
 */
import { randomBytes, X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import type { ChildListener, KernelLog, KernelPlace } from '../processes/host/zygote-process.ts';
import { asText, ShapeError } from '../processes/json-shape.ts';
import type { EnrolledNode, EnrolledNodes } from './enrolled-nodes.ts';
import { Invitations } from './invitation.ts';
import { JoinedNode } from './joined-node.ts';
import type { KernelArrivals } from './kernel-arrivals.ts';
import { isNodeSecret } from './node-secret.ts';
import { endSoon, type NodeServer, openNodeServer, refuse } from './node-server.ts';
import { choose, type Placement } from './placement.ts';
import {
  BEAT_MS,
  compareReleases,
  decodeRelease,
  type FrameFields,
  LEASE_MS,
  LOST_MS,
  type NodeCondition,
  type NodeKernelUse,
  type NodeOffer,
  type Release,
  readFirstLine,
  sendLine,
} from './protocol.ts';

/** How long an order waits for room: less than a kernel may take to start, so that its user learns the reason. */
const WAIT_MS = 28_000;
const NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$/;
const MAX_REFUSALS = 20;
/** A temporary node that has enrolled and has not joined for this long is forgotten. */
const JOIN_WITHIN_MS = 10 * 60_000;

export interface KernelNodesOptions {
  readonly host: string;
  readonly port: number;
  readonly enrolled: EnrolledNodes;
  /** Returns whether this is the secret that admits machines without an invitation; absent: there is none. */
  readonly isSecret?: ((given: string) => boolean) | undefined;
  /** The folder of the workspaces, which nodes have mounted at the same path, and a text in a file in it that they read. */
  readonly check: { readonly path: string; readonly text: string };
  /**
   * Takes the connections of kernels whose sessions are in this process; absent when all sessions are in
   * other processes.
   */
  readonly arrivals?: KernelArrivals;
  /** How the node of a kernel is chosen. */
  readonly placement: Placement;
  readonly log: KernelLog;
  /** How long an order waits for room. The default is a little less than the time that a kernel may take to start. */
  readonly waitMs?: number;
  /** How long orders wait for nodes that were enrolled before the start. The default is the longest life of kernels that are cut off. */
  readonly absenceMs?: number;
}

/** The facts about a node that operators see. */
export interface NodeState {
  readonly name: string;
  /** `away`: the node is not connected. `draining`: the node gets no new kernels. */
  readonly state: 'joined' | 'draining' | 'away';
  /** Whether an operator wants no new kernels there. */
  readonly isDraining: boolean;
  readonly enrolledAt: string;
  readonly joinedAt: string | null;
  readonly address: string | null;
  readonly kernels: number;
  readonly offer: NodeOffer | null;
  readonly condition: NodeCondition | null;
  /** Why the node gets no kernels, or the reason for its last refusal; null when nothing is wrong. */
  readonly problem: string | null;
}

interface Waiting {
  readonly order: FrameFields;
  readonly listener: ChildListener;
  readonly where: KernelPlace;
  readonly patience: NodeJS.Timeout;
}

export class KernelNodes implements AsyncDisposable {
  readonly #options: KernelNodesOptions;
  readonly #invitations: Invitations;
  readonly #nodes = new Map<string, JoinedNode>();
  /** Orders that no node has taken, the oldest first. */
  readonly #waiting = new Map<string, Waiting>();
  /** The node of each kernel. */
  readonly #placed = new Map<string, JoinedNode>();
  /** Why nodes were refused, by name, the newest last. */
  readonly #refusals = new Map<string, string>();
  /** The names of machines that get a certificate now. */
  readonly #enrolling = new Set<string>();
  #server: NodeServer | undefined;
  #beat: NodeJS.Timeout | undefined;
  #release: Release | undefined;
  #watcher: (() => void) | undefined;
  #isEnded = false;
  #isPlacing = false;
  /** The nodes that were enrolled before this start and have not come back. They may still have kernels. */
  readonly #missing: Set<string>;
  #missingUntil: NodeJS.Timeout | undefined;

  constructor(options: KernelNodesOptions) {
    this.#options = options;
    this.#invitations = new Invitations(options.enrolled.digest);
    this.#missing = new Set(options.enrolled.list().map(({ name }) => name));
  }

  /** Listens for nodes. Rejects with one line when the port cannot be had. */
  async listen(): Promise<void> {
    const { host, port, enrolled, arrivals, log, absenceMs = LOST_MS } = this.#options;
    this.#server = await openNodeServer({
      host,
      ports: [port],
      authority: enrolled.authority,
      log,
      take: (...connection) => this.#welcome(...connection),
    });
    if (arrivals !== undefined) arrivals.port = this.port;
    this.#missingUntil = setTimeout(() => {
      this.#missing.clear();
      this.#place();
    }, absenceMs).unref();
    this.#beat = setInterval(() => {
      for (const node of this.#nodes.values()) node.beat();
      this.#forgetUnjoined();
    }, BEAT_MS).unref();
    log.info({ port: this.port }, 'kernel nodes can join');
  }

  get port(): number {
    return this.#server?.port ?? 0;
  }

  /** A name of this server that is the same after a restart. */
  get serverId(): string {
    return this.#options.enrolled.digest.toString('hex').slice(0, 12);
  }

  /** Sets the release that nodes must have. No node is admitted before. */
  set release(release: Release) {
    this.#release = release;
  }

  /**
   * Makes an invitation: the code that a machine joins with, once. With a name, the node is a temporary one of this name: its certificate
   * is worth nothing after its first connection.
   */
  invite(name?: string): { readonly code: string; readonly expiresAt: string; readonly port: number } {
    return { ...this.#invitations.make(Date.now(), name), port: this.port };
  }

  list(): readonly NodeState[] {
    return this.#options.enrolled.list().map((enrolled) => {
      const node = this.#nodes.get(enrolled.name);
      const files = node?.condition.filesProblem ?? null;
      return {
        name: enrolled.name,
        state: node === undefined ? 'away' : enrolled.isDraining || files !== null ? 'draining' : 'joined',
        isDraining: enrolled.isDraining,
        enrolledAt: enrolled.enrolledAt,
        joinedAt: node?.joinedAt ?? null,
        address: node?.address ?? null,
        kernels: node?.kernels ?? 0,
        offer: node?.offer ?? null,
        condition: node?.condition ?? null,
        problem: node === undefined ? (this.#refusals.get(enrolled.name) ?? null) : files,
      };
    });
  }

  /**
   * Calls `listener` when an order waits, and when a node has joined or is lost. There is one such listener.
   */
  watch(changed: () => void): void {
    this.#watcher = changed;
  }

  /** The orders that wait for room. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Decides whether a node gets new kernels; its present kernels stay. Returns whether there is such a node.
   */
  drain(name: string, isDraining: boolean): boolean {
    const isKnown = this.#options.enrolled.drain(name, isDraining);
    if (!isDraining) this.#place();
    return isKnown;
  }

  /** Removes a node: its kernels end, and it needs a new invitation. Returns whether there was such a node. */
  remove(name: string): boolean {
    const isKnown = this.#options.enrolled.remove(name);
    this.#nodes.get(name)?.end('it was removed');
    return isKnown;
  }

  /** Gives the order to a node. The order waits while no node has room. */
  order(id: string, order: FrameFields, listener: ChildListener, where: KernelPlace = {}): void {
    const patience = setTimeout(() => {
      this.#waiting.delete(id);
      listener.refused(
        this.#nodes.size === 0
          ? 'No kernel node is connected.'
          : 'No kernel node has room for another kernel.',
      );
    }, this.#options.waitMs ?? WAIT_MS);
    this.#waiting.set(id, { order, listener, where: { port: this.port, ...where }, patience });
    this.#place();
    if (this.#waiting.has(id)) this.#watcher?.();
  }

  /** Signals a kernel, or withdraws its order. Returns false when neither is known here. */
  signal(id: string, signal: number): boolean {
    const waiting = this.#waiting.get(id);
    if (waiting !== undefined) {
      clearTimeout(waiting.patience);
      this.#waiting.delete(id);
      return true;
    }
    const node = this.#placed.get(id);
    if (node === undefined) return false;
    node.signal(id, signal);
    return true;
  }

  /** Notes whether a kernel works. Returns false when no node has the kernel. */
  setBusy(id: string, isBusy: boolean): boolean {
    const node = this.#placed.get(id);
    node?.setBusy(id, isBusy);
    return node !== undefined;
  }

  /** Resolves with the use of all kernels on nodes, by node. */
  async use(): Promise<ReadonlyMap<string, readonly NodeKernelUse[]>> {
    const nodes = [...this.#nodes.values()];
    return new Map(await Promise.all(nodes.map(async (node) => [node.name, await node.use()] as const)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isEnded = true;
    clearInterval(this.#beat);
    clearTimeout(this.#missingUntil);
    for (const { patience } of this.#waiting.values()) clearTimeout(patience);
    this.#waiting.clear();
    for (const node of [...this.#nodes.values()]) node.end('the server stops');
    await this.#server?.[Symbol.asyncDispose]();
  }

  /**
   * Gives orders that wait to nodes with room, the oldest first. A session whose kernel still lives on a node that is cut off must not get
   * another one, and a server that has just started knows no kernel.
   */
  #place(): void {
    if (this.#isPlacing || this.#isEnded || this.#missing.size > 0) return;
    this.#isPlacing = true; // a listener may give another order
    for (const [id, { order, listener, where, patience }] of this.#waiting) {
      const usable = [...this.#nodes.values()].filter(
        (node) =>
          node.condition.filesProblem === null && this.#options.enrolled.get(node.name)?.isDraining === false,
      );
      const chosen = choose(
        usable.map((node) => node.candidateFor(where.workspaceId)),
        this.#options.placement,
      );
      if (chosen === undefined) break;
      clearTimeout(patience);
      this.#waiting.delete(id);
      this.#placed.set(id, chosen.node);
      chosen.node.order(id, order, this.#forgetting(id, listener), where);
    }
    this.#isPlacing = false;
  }

  /** Returns the listener, which forgets the place of the kernel at its end. */
  #forgetting(id: string, listener: ChildListener): ChildListener {
    return {
      forked: (...report) => listener.forked?.(...report),
      placed: (key) => listener.placed?.(key),
      ended: (end) => {
        this.#placed.delete(id);
        listener.ended(end);
      },
      refused: (reason) => {
        this.#placed.delete(id);
        listener.refused(reason);
      },
      lost: () => {
        this.#placed.delete(id);
        listener.lost();
      },
    };
  }

  #welcome(socket: TLSSocket, first: FrameFields, rest: Buffer): Promise<void> {
    if (first.op === 'enrol') return this.#enrol(socket, first);
    if (first.op === 'join') return this.#join(socket, first, rest);
    const { arrivals } = this.#options;
    if (first.op === 'kernel' && arrivals !== undefined) return arrivals.take(socket, first, rest);
    throw new ShapeError('an unknown purpose');
  }

  async #enrol(socket: TLSSocket, { secret, name: wanted, request }: FrameFields): Promise<void> {
    const { enrolled, log } = this.#options;
    const given = asText(secret, 'secret');
    const ownName = asText(wanted, 'name');
    if (!NAME.test(ownName))
      throw new ShapeError(
        'The name of a node has letters, digits, dots, underscores and hyphens, at most 64.',
      );
    const admission = this.#admit(given);
    if (admission === undefined) {
      log.warn(
        { address: socket.remoteAddress },
        isNodeSecret(given)
          ? 'a machine had a secret of kernel nodes that is not valid'
          : 'a machine had an invitation that is not valid',
      );
      refuse(
        socket,
        isNodeSecret(given)
          ? 'The secret is not that of this server: copy the file of its TROUPE_NODES_SECRET_FILE again.'
          : 'The invitation is not valid: it works once, for 15 minutes, until the server restarts. Ask for another one.',
      );
      return;
    }
    const { isTemporary } = admission;
    const name = admission.name ?? this.#freeName(ownName, isTemporary);
    const certificate = await this.#certify(name, asText(request, 'request'), isTemporary);
    log.info({ node: name, address: socket.remoteAddress }, 'a kernel node has enrolled');
    sendLine(socket, {
      op: 'enrolled',
      name,
      certificate,
      authority: enrolled.authority.cert,
      temporary: isTemporary,
    });
    endSoon(socket);
  }

  /** Returns how a machine with this secret is admitted; undefined when it is not. */
  #admit(secret: string): { readonly name?: string | undefined; readonly isTemporary: boolean } | undefined {
    if (this.#options.isSecret?.(secret) === true) return { isTemporary: true };
    const invited = this.#invitations.use(secret);
    return invited && { name: invited.name, isTemporary: invited.name !== undefined };
  }

  /**
   * `isWanted` is called when the certificate is made. The certificate counts only if the call returns true.
   */
  async #certify(
    name: string,
    request: string,
    isTemporary: boolean,
    isWanted: () => boolean = () => true,
  ): Promise<string> {
    const { enrolled } = this.#options;
    // The name is taken before anything is awaited, so that simultaneous enrolments with one name get
    // different names.
    this.#enrolling.add(name);
    try {
      const { signNode } = await import('./certificates.ts');
      const certificate = await signNode(enrolled.authority, name, request);
      if (!isWanted()) throw new ShapeError('the node was removed meanwhile');
      enrolled.add(name, new X509Certificate(certificate), isTemporary);
      return certificate;
    } finally {
      this.#enrolling.delete(name);
    }
  }

  /**
   * Returns the name, with a number appended when a connected or enrolling machine has the same name. A
   * temporary node never takes the name of another node, because nobody has invited this machine in
   * particular.
   */
  #freeName(wanted: string, isTemporary: boolean): string {
    const isTaken =
      this.#nodes.has(wanted) ||
      this.#enrolling.has(wanted) ||
      (isTemporary && this.#options.enrolled.get(wanted) !== undefined);
    return isTaken ? `${wanted.slice(0, 55)}-${randomBytes(4).toString('hex')}` : wanted;
  }

  /** Forgets temporary nodes that have enrolled and never joined. */
  #forgetUnjoined(now = Date.now()): void {
    const { enrolled } = this.#options;
    for (const { name, isTemporary, enrolledAt } of enrolled.list())
      if (isTemporary && !this.#nodes.has(name) && now - Date.parse(enrolledAt) > JOIN_WITHIN_MS)
        enrolled.remove(name);
  }

  /** Returns the node at the other end. Throws when its certificate is not the certificate of a node. */
  #peerOf(socket: TLSSocket): EnrolledNode {
    const certificate = socket.getPeerX509Certificate();
    if (!socket.authorized || certificate === undefined)
      throw new ShapeError(
        'The certificate is not valid: it is missing, has expired or is of another server. Join with a new invitation.',
      );
    const node = this.#options.enrolled.owner(certificate);
    if (node === undefined) throw new ShapeError('This node was removed. Join with a new invitation.');
    return node;
  }

  async #join(socket: TLSSocket, hello: FrameFields, rest: Buffer): Promise<void> {
    const { log, check } = this.#options;
    const { name } = this.#peerOf(socket);
    if (this.#release === undefined) throw new ShapeError('The server is still starting.');
    const difference = compareReleases(this.#release, decodeRelease(hello.release));
    if (difference !== null) return this.#refuseJoin(name, socket, difference);
    if (rest.length > 0) throw new ShapeError('a node said more than was asked');
    sendLine(socket, { op: 'check', path: check.path });
    const { first: checked, rest: next } = await readFirstLine(socket);
    if (checked.text !== check.text)
      return this.#refuseJoin(
        name,
        socket,
        typeof checked.text === 'string'
          ? `The file ${check.path} is another one on the node: mount the server's folder there.`
          : `The node cannot read ${check.path}: mount the server's folder of workspaces at the same path.`,
      );
    const peer = this.#peerOf(socket); // the node may have been removed meanwhile
    const before = this.#nodes.get(name);
    this.#nodes.delete(name); // the loss of an earlier connection does not end the membership
    before?.end('it has connected again');
    const node: JoinedNode = new JoinedNode(peer, socket, next, hello, {
      changed: () => this.#place(),
      lost: (why) => this.#forget(node, why),
      // A node that was removed while its certificate was made must not be in the list again.
      renew: (request) =>
        this.#certify(name, request, peer.isTemporary, () => this.#nodes.get(name) === node),
    });
    this.#nodes.set(name, node);
    this.#missing.delete(name); // a node ends its kernels before it joins again
    this.#refusals.delete(name);
    log.info({ node: name, address: node.address, ...node.offer }, 'a kernel node has joined');
    sendLine(socket, { op: 'welcome', leaseMs: LEASE_MS });
    this.#place();
    this.#watcher?.();
  }

  #refuseJoin(name: string, socket: TLSSocket, reason: string): void {
    this.#options.log.error({ node: name, reason }, 'a kernel node was refused');
    this.#refusals.delete(name);
    this.#refusals.set(name, reason);
    const [oldest] = this.#refusals.keys();
    if (this.#refusals.size > MAX_REFUSALS && oldest !== undefined) this.#refusals.delete(oldest);
    refuse(socket, reason);
  }

  #forget(node: JoinedNode, why: string): void {
    if (this.#nodes.get(node.name) !== node) return;
    this.#nodes.delete(node.name);
    if (this.#options.enrolled.get(node.name)?.isTemporary === true) this.#options.enrolled.remove(node.name);
    this.#watcher?.();
    if (!this.#isEnded)
      this.#options.log.error({ node: node.name, kernels: node.kernels, why }, 'a kernel node is lost');
  }
}
