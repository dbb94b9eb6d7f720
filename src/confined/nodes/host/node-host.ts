/**
 * One life of a node: a kernel host, and the connection to the server for which it forks kernels. The life
 * ends when the host or the connection ends, or when the server has been silent for the lease. All kernels
 * end with the life.
 */

import { readFile } from 'node:fs/promises';
import { availableParallelism, loadavg } from 'node:os';
import { connect, createSecureContext, type SecureContext, type TLSSocket } from 'node:tls';
import { unawaited } from '#src/base/async/unawaited.ts';
import { invariant } from '#src/base/errors/invariant.ts';
import { loadPeerProcess, type PeerProcess, UNKNOWN_PEERS } from '#src/base/os/peer-process.ts';
import { cutText } from '#src/base/text/cut-text.ts';
import type { KernelHost } from '../../processes/host/kernel-host.ts';
import type { HostParts } from '../../processes/host/kernel-host-options.ts';
import { OomWatch } from '../../processes/host/oom-watch.ts';
import {
  type ChildListener,
  type HostHello,
  type KernelLog,
  type ZygoteOptions,
  ZygoteProcess,
} from '../../processes/host/zygote-process.ts';
import { asBoolean, asList, asNumber, asRecord, asText, isRecord } from '../../processes/json-shape.ts';
import {
  type FrameFields,
  LEASE_MS,
  LOST_MS,
  type NodeCondition,
  type NodeKernelUse,
  readFirstLine,
  readLines,
  sendLine,
  tune,
} from '../protocol.ts';
import { releaseOf } from '../release.ts';
import { KernelRelay } from './kernel-relay.ts';
import { freeMemory, memoryOfMachine } from './memory.ts';
import { needsRenewal, type StoredMembership } from './state-folder.ts';

const SIGINT = 2;
const SIGKILL = 9;
/** How often the lease of the kernel host is renewed, while the server is heard. */
const RENEW_MS = 500;
/** A lease that is renewed later than this after a sign of life could end after the server has given this node up. */
const RENEWABLE_MS = LOST_MS - LEASE_MS;
const CONNECT_MS = 10_000;
/** How long a kernel that has closed its connection may take until its end. */
const OWN_END_MS = 2000;
/** How often the folder of the workspaces is read, and how long one reading may take. */
const FILES_EVERY_MS = 10_000;
const FILES_MS = 5000;
/** How often the age of the certificate is checked. */
const CERTIFICATE_EVERY_MS = 6 * 3_600_000;

export interface NodeHostOptions {
  readonly membership: StoredMembership;
  /**
   * Makes the supervisor of a kernel host. `preload`: whether the host loads the usual libraries, if the
   * settings allow it.
   */
  readonly makeHost: (preload: boolean, parts: HostParts) => KernelHost;
  /** The most kernels at once. */
  readonly capacity: number;
  readonly log: KernelLog;
  /** Called when the server has sent a newer certificate of the same key. */
  readonly renewed: (certificate: string) => void;
  /** Returns the use of the kernels with these process ids. */
  readonly useOf: (pids: readonly number[]) => Promise<readonly NodeKernelUse[]>;
}

/** How a life has ended. */
export interface NodeEnd {
  /** `refused`: the server refuses this node. `silent`: the server was silent for too long. */
  readonly kind: 'refused' | 'silent' | 'gone';
  readonly reason: string;
  /** Whether the node had joined. */
  readonly hadJoined: boolean;
}

interface Child {
  readonly relay: KernelRelay;
  /** The kernel host that has got the order. */
  zygote: ZygoteProcess | undefined;
  pid: number | undefined;
  /** Whether the server has withdrawn the order before a kernel host got it. */
  isWithdrawn: boolean;
}

export class NodeHost {
  readonly #options: NodeHostOptions;
  #context: SecureContext = createSecureContext();
  #certificate = '';
  readonly #host: KernelHost;
  readonly #children = new Map<string, Child>();
  readonly #oomWatch = new OomWatch();
  readonly #timers: NodeJS.Timeout[] = [];
  #peers: PeerProcess = UNKNOWN_PEERS;
  #zygote: ZygoteProcess | undefined;
  #plain: Promise<ZygoteProcess> | undefined;
  readonly #plainHosts = new Set<KernelHost>();
  /** The kernel hosts whose leases this process renews. */
  readonly #leased = new Set<ZygoteProcess>();
  #hello: HostHello | undefined;
  #socket: TLSSocket | undefined;
  /** When this node has sent the last message of which it knows that the server has got it. */
  #heardAt = performance.now();
  /** When this node has sent its last answer. */
  #answeredAt = 0;
  #hasJoined = false;
  #checkPath = '';
  #checkText: string | null = null;
  #filesProblem: string | null = null;
  #isReading = false;
  #end: (end: Omit<NodeEnd, 'hadJoined'>) => void = () => undefined;

  constructor(options: NodeHostOptions) {
    this.#options = options;
    this.#useCertificate(options.membership.certificate);
    this.#host = options.makeHost(true, {
      proves: true,
      startZygote: async (given) => {
        const run = await this.#startLeased(given);
        this.#zygote = run.zygote;
        this.#hello = run.hello;
        this.#every(RENEW_MS, () => this.#renewLeases());
        unawaited(
          run.zygote.ended.then(() => this.#end({ kind: 'gone', reason: 'the kernel host has ended' })),
          'node-host: the end of the kernel host',
        );
        return run;
      },
    });
  }

  /** Starts a kernel host that ends when this process does not renew its lease. */
  async #startLeased(given: ZygoteOptions) {
    const env = { ...given.env, TROUPE_LEASE_S: String(LEASE_MS / 1000) };
    const run = await ZygoteProcess.start({ ...given, env, rests: false });
    this.#leased.add(run.zygote);
    unawaited(
      run.zygote.ended.then(() => this.#leased.delete(run.zygote)),
      'node-host: the end of a lease',
    );
    return run;
  }

  /** Resolves with the kernel host that has only marimo loaded. It is started by its first kernel, and again after its end. */
  #plainZygote(): Promise<ZygoteProcess> {
    this.#plain ??= this.#startPlain();
    this.#plain.catch(() => {
      this.#plain = undefined;
    });
    return this.#plain;
  }

  async #startPlain(): Promise<ZygoteProcess> {
    let zygote: ZygoteProcess | undefined;
    const host = this.#options.makeHost(false, {
      startZygote: async (given) => {
        const run = await this.#startLeased(given);
        zygote = run.zygote;
        return run;
      },
    });
    this.#plainHosts.add(host);
    await host.start();
    invariant(zygote !== undefined, 'A kernel host that has started has a zygote.');
    const forgotten = zygote.ended.then(() => {
      this.#plain = undefined;
      this.#plainHosts.delete(host);
      return host[Symbol.asyncDispose]();
    });
    unawaited(forgotten, 'node-host: the end of the plain kernel host');
    return zygote;
  }

  /**
   * Resolves when this life has ended and all its resources are released. Rejects when kernels cannot run on
   * this machine.
   */
  async live(signal: AbortSignal): Promise<NodeEnd> {
    const ended = new Promise<Omit<NodeEnd, 'hadJoined'>>((resolve) => {
      this.#end = resolve;
    });
    const abort = () => this.#end({ kind: 'gone', reason: 'it was asked to end' });
    signal.addEventListener('abort', abort);
    try {
      this.#peers = await loadPeerProcess();
      await this.#host.start();
      await Promise.race([this.#host.proven(), ended]);
      this.#join().catch((error: Error) => this.#end({ kind: 'gone', reason: error.message }));
      return { ...(await ended), hadJoined: this.#hasJoined };
    } finally {
      signal.removeEventListener('abort', abort);
      for (const timer of this.#timers) clearInterval(timer);
      this.#socket?.destroy();
      const children = [...this.#children.values()];
      this.#children.clear();
      for (const { relay } of children) relay[Symbol.dispose]();
      await Promise.all([this.#host, ...this.#plainHosts].map((host) => host[Symbol.asyncDispose]()));
    }
  }

  /** The lease of the kernel host ends also when this process is stopped, because only this process renews it. */
  #renewLeases(): void {
    const unheardMs = this.#hasJoined ? performance.now() - this.#heardAt : 0;
    if (unheardMs > LEASE_MS) this.#end({ kind: 'silent', reason: 'the server was not heard for too long' });
    else if (unheardMs < RENEWABLE_MS) for (const zygote of this.#leased) zygote.renewLease();
  }

  async #join(): Promise<void> {
    const { capacity, log } = this.#options;
    const hello = this.#hello;
    if (hello === undefined) return;
    const socket = await this.#connect();
    this.#socket = socket;
    socket.once('close', () => this.#end({ kind: 'gone', reason: 'the server has closed the connection' }));
    sendLine(socket, {
      op: 'join',
      release: releaseOf(hello),
      confinement: this.#host.confinement ?? hello.confinement,
      cores: availableParallelism(),
      memoryBytes: memoryOfMachine(),
      capacity,
      ...this.#condition(),
    });
    const { first, rest } = await readFirstLine(socket);
    if (first.op === 'refused') return this.#refused(first);
    this.#checkPath = asText(first.path, 'path');
    this.#checkText = await readCheck(this.#checkPath);
    const checkedAt = performance.now();
    sendLine(socket, { op: 'checked', text: this.#checkText });
    if (rest.length > 0) socket.unshift(rest);
    const { first: answer, rest: next } = await readFirstLine(socket);
    if (answer.op !== 'welcome') return this.#refused(answer);
    this.#heardAt = checkedAt;
    this.#answeredAt = checkedAt;
    this.#hasJoined = true;
    log.info(
      { node: this.#options.membership.name, confinement: hello.confinement },
      'this node has joined the server',
    );
    this.#every(FILES_EVERY_MS, () =>
      unawaited(this.#checkFiles(), 'node-host: the check of the shared files'),
    );
    this.#renewCertificate();
    this.#every(CERTIFICATE_EVERY_MS, () => this.#renewCertificate());
    readLines(
      socket,
      next,
      (message) => this.#take(message),
      (error) =>
        this.#end({ kind: 'gone', reason: `the server sent something unreadable: ${String(error)}` }),
    );
  }

  #refused({ reason }: FrameFields): void {
    this.#end({ kind: 'refused', reason: asText(reason, 'reason') });
  }

  #connect(): Promise<TLSSocket> {
    const { host, port } = this.#options.membership;
    return new Promise((resolve, reject) => {
      const socket = connect({
        host,
        port,
        secureContext: this.#context,
        minVersion: 'TLSv1.3',
        checkServerIdentity: () => undefined,
      });
      tune(socket);
      socket.setTimeout(CONNECT_MS);
      socket.once('timeout', () => socket.destroy(new Error(`${host}:${port} does not answer`)));
      socket.once('error', (error) =>
        reject(new Error(`${host}:${port} cannot be reached: ${error.message}`)),
      );
      socket.once('secureConnect', () => {
        socket.setTimeout(0).on('error', () => undefined);
        resolve(socket);
      });
    });
  }

  #take(message: FrameFields): void {
    switch (message.op) {
      case 'ping':
        // The server asks again only once it has got the last answer, and counts its own patience from then.
        this.#heardAt = this.#answeredAt;
        this.#answeredAt = performance.now();
        this.#say({ op: 'pong', ...this.#condition() });
        return;
      case 'fork':
        unawaited(this.#fork(message), 'node-host: the start of a kernel');
        return;
      case 'signal':
        this.#signal(asText(message.id, 'id'), asNumber(message.signal, 'signal'));
        return;
      case 'busy':
        this.#children
          .get(asText(message.id, 'id'))
          ?.zygote?.setBusy(asText(message.id, 'id'), asBoolean(message.isBusy, 'isBusy'));
        return;
      case 'use':
        unawaited(this.#tellUse(), 'node-host: the use of kernels');
        return;
      case 'certificate':
        this.#useCertificate(asText(message.certificate, 'certificate'));
        this.#options.renewed(this.#certificate);
        return;
      default:
        throw new Error(`an unknown order: ${cutText(String(message.op), 0, 40)}`);
    }
  }

  /** Starts a kernel. Its unix socket listens before the order is given. */
  async #fork(message: FrameFields): Promise<void> {
    const { port, isPlain, workspaceId, ...order } = message;
    const id = asText(order.id, 'id');
    const token = asText(asRecord(order.connection, 'connection').token, 'token');
    const { membership } = this.#options;
    const path = this.#host.newSocketPath();
    const child: Child = {
      relay: new KernelRelay({
        id,
        token,
        path,
        server: { host: membership.host, port: asNumber(port, 'port') },
        context: this.#context,
        peers: this.#peers,
        announced: () => this.#signal(id, SIGINT),
        // A kernel does not outlive its connection. A kernel that has closed its connection is about to end,
        // and a signal would hide the cause.
        ended: (isByKernel) => {
          const kill = () => child.zygote?.signal(id, SIGKILL);
          if (isByKernel) setTimeout(kill, OWN_END_MS).unref();
          else kill();
        },
      }),
      zygote: undefined,
      pid: undefined,
      isWithdrawn: false,
    };
    this.#children.set(id, child);
    try {
      await child.relay.listen();
      const zygote = isPlain === true ? await this.#plainZygote() : this.#zygote;
      if (zygote === undefined || child.isWithdrawn) throw new Error('The order was withdrawn.');
      child.zygote = zygote;
      this.#oomWatch.hasKilled(); // forgets kills that happened before this kernel
      const confine = this.#confine(order.confine);
      zygote.order(
        id,
        { ...order, confine, connection: { path, token } },
        this.#listenerOf(id, child),
        typeof workspaceId === 'string' ? { workspaceId } : {},
      );
    } catch (error) {
      this.#forget(id);
      this.#say({ op: 'refused', id, error: error instanceof Error ? error.message : String(error) });
    }
  }

  /** Returns the listener that passes on the reports about a kernel. */
  #listenerOf(id: string, child: Child): ChildListener {
    return {
      forked: (pid, init) => {
        child.pid = pid;
        child.relay.expect(pid);
        this.#say({ op: 'forked', id, pid, init });
      },
      ended: ({ code, signal, outOfMemory = false, words = '' }) => {
        this.#forget(id);
        const machineOutOfMemory = signal === SIGKILL && this.#oomWatch.hasKilled();
        this.#say({ op: 'exited', id, code, signal, outOfMemory, machineOutOfMemory, words });
      },
      refused: (error) => {
        this.#forget(id);
        this.#say({ op: 'refused', id, error });
      },
      lost: () => {
        this.#forget(id);
        this.#say({ op: 'lost', id });
      },
    };
  }

  /**
   * Returns the confinement of a kernel: the layers of this machine, with the hidden paths and the limit of
   * the order.
   */
  #confine(ordered: unknown): FrameFields | null {
    const own = this.#host.confinementOrder;
    if (own === null) return null;
    const { processes = null, hidden = [] } = isRecord(ordered) ? ordered : {};
    const all = [...asList(hidden, asText, 'hidden'), ...asList(own.hidden, asText, 'hidden')];
    return { ...own, hidden: [...new Set(all)], processes };
  }

  #signal(id: string, signal: number): void {
    const child = this.#children.get(id);
    if (child === undefined) return;
    if (child.zygote === undefined) child.isWithdrawn = child.isWithdrawn || signal === SIGKILL;
    else if (!child.relay.signal(signal)) child.zygote.signal(id, signal);
  }

  #forget(id: string): void {
    const child = this.#children.get(id);
    this.#children.delete(id);
    // The last bytes of the kernel are still on their way; the server closes its end once it has them.
    child?.relay.finish();
  }

  async #tellUse(): Promise<void> {
    const pids = [...this.#children.values()].flatMap(({ pid }) => (pid === undefined ? [] : [pid]));
    this.#say({ op: 'use', kernels: await this.#options.useOf(pids).catch(() => []) });
  }

  #condition(): NodeCondition {
    return { freeMemoryBytes: freeMemory(), load: loadavg()[0] ?? 0, filesProblem: this.#filesProblem };
  }

  /**
   * Reads the file of the server again. A reading that hangs counts as a problem, and no second reading is
   * begun.
   */
  async #checkFiles(): Promise<void> {
    if (this.#isReading) {
      this.#filesProblem = `Reading ${this.#checkPath} takes too long.`;
      return;
    }
    this.#isReading = true;
    const late = setTimeout(() => {
      this.#filesProblem = `Reading ${this.#checkPath} takes too long.`;
    }, FILES_MS);
    const text = await readCheck(this.#checkPath);
    clearTimeout(late);
    this.#isReading = false;
    this.#filesProblem =
      text === null || text !== this.#checkText
        ? `${this.#checkPath} cannot be read any more: the folder of the workspaces is not mounted.`
        : null;
  }

  #useCertificate(certificate: string): void {
    const { key, authority } = this.#options.membership;
    this.#context = createSecureContext({ key, cert: certificate, ca: authority, minVersion: 'TLSv1.3' });
    this.#certificate = certificate;
  }

  #renewCertificate(): void {
    if (!needsRenewal(this.#certificate)) return;
    const { name, key } = this.#options.membership;
    const asked = import('../certificates.ts').then(async ({ requestCertificate }) => {
      const { request } = await requestCertificate(name, key);
      this.#say({ op: 'renew', request });
    });
    unawaited(asked, 'node-host: the renewal of the certificate');
  }

  #say(message: FrameFields): void {
    if (this.#socket !== undefined) sendLine(this.#socket, message);
  }

  #every(ms: number, act: () => void): void {
    this.#timers.push(setInterval(act, ms));
  }
}

async function readCheck(path: string): Promise<string | null> {
  return readFile(path, 'utf8').catch(() => null);
}
