/**
 * One kernel process, from the order to fork it to the report of its end. It owns the process and its timers, which are
 * gone once `exited` was called.
 *
 *   waiting ──► forking ──► opening ──► up ──► gone        any of them ──► gone
 *   (for the    (until the  (until all cells
 *    host)       is ready)   are registered)
 *
 * Invariants: a bridge-done counts only for the seq in flight; no command before `up`; `exited` exactly once, and nothing
 * after it.
 */
import { invariant } from '#src/base/errors/invariant.ts';
import type { ServerMetrics } from '#src/base/metrics/server-metrics.ts';
import { type ChildEnd, type ChildEvents, type ChildPort, ConfinedChild } from '../confined-child.ts';
import { classifyExit, describeRefusal, type EndFacts, type ProcessEnd } from '../exit-classification.ts';
import type { OomWatch } from '../host/oom-watch.ts';
import { isRecord } from '../json-shape.ts';
import { type FrameReading, JSON_FRAMES } from '../kernel-socket.ts';
import type { ChildRequest } from '../launch-order.ts';
import type { KernelLimits } from '../limits.ts';
import { BusyReport } from './busy-report.ts';
import { CallWindow } from './call-window.ts';
import { CommandSlot } from './command-slot.ts';
import type { CompletionRequest, Kernel, KernelLaunch, KernelSink } from './kernel.ts';
import {
  callFrame,
  completionFrame,
  controlFrame,
  createNotebook,
  editCells,
  elementCommand,
  executeScratchpad,
  followFrame,
  toMarimoConfigs,
} from './kernel-commands.ts';
import { decodeMessage, mayTakeLong } from './message-decoders.ts';
import type { KernelMessage } from './messages.ts';

/** The metrics of kernels. */
export type KernelMetrics = Pick<ServerMetrics, 'kernelStarts' | 'kernelStartDuration' | 'kernelEnds'>;

/** The parts of its host that a kernel uses. */
export interface KernelPort extends ChildPort {
  readonly request: () => ChildRequest;
  readonly launchTimeoutMs: number;
  readonly limits: KernelLimits;
  readonly metrics: KernelMetrics | undefined;
  readonly oomWatch: OomWatch;
  /** Called once when the kernel is up, before the sink's `ready`. */
  readonly up?: () => void;
  /** Called once, before the sink's `exited`. */
  readonly forget: () => void;
}

type Milestone = 'startedAt' | 'admittedAt' | 'readyAt' | 'openedAt';
type State = 'waiting' | 'forking' | 'opening' | 'up' | 'gone';

const STOP_MS = 1500;
/** How many pages may wait to be announced to a kernel that does not read. */
const MAX_WAITING_PAGES = 256;

export class KernelProcess implements Kernel {
  readonly id: string;
  readonly #launch: KernelLaunch;
  readonly #sink: KernelSink;
  readonly #port: KernelPort;
  readonly #child: ConfinedChild;
  readonly #commands: CommandSlot;
  readonly #calls: CallWindow;
  readonly #work: BusyReport;
  /** The sizes of the questions of notebook code, by their values. */
  readonly #questionBytes = new WeakMap<object, number>();
  /** The completions and the pages that wait until the kernel has taken the frames before them. */
  #waitingCompletion: CompletionRequest | undefined;
  #waitingPages: number[] = [];
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #times: Record<Milestone, number> = {
    startedAt: performance.now(),
    admittedAt: 0,
    readyAt: 0,
    openedAt: 0,
  };
  #state: State = 'waiting';
  #isPaused = false;
  #pid: number | null = null;
  #node: string | null = null;
  #isOpened = false;
  #asked: EndFacts['asked'] = null;
  #refusal: EndFacts['refusal'] = null;

  /** Starts the kernel at once, but reports nothing before the caller's turn is over. */
  constructor(launch: KernelLaunch, sink: KernelSink, port: KernelPort) {
    this.id = launch.id;
    this.#launch = launch;
    this.#sink = sink;
    this.#port = port;
    const events: ChildEvents = {
      admitted: () => this.#mark('admittedAt'),
      forked: (pid, node) => {
        this.#pid = pid;
        this.#node = node ?? null;
        this.#becomeUp();
      },
      received: (values) => this.#receive(values),
      ended: (end) => this.#onEnded(end),
    };
    const prepareLarge = sink.prepare?.bind(sink);
    const reading = {
      ...this.#measured(JSON_FRAMES),
      mayTakeLong,
      ...(prepareLarge === undefined ? {} : { prepareLarge }),
    };
    this.#child = new ConfinedChild(port, () => this.#request(), events, reading);
    const { sender } = this.#child;
    this.#work = new BusyReport((isBusy) => this.#child.setBusy(isBusy));
    this.#commands = new CommandSlot({ sender, signal: () => this.#child.signal('SIGINT') });
    this.#calls = new CallWindow(sender, (isHeld) => this.#child.hold(isHeld));
    sender.onDrained = () => {
      if (this.#calls.isHeld) this.#calls.settle();
      if (this.#waitingPages.length > 0 || this.#waitingCompletion !== undefined) this.#sendWaiting();
    };
    this.#after(port.launchTimeoutMs, () => {
      if (this.#state !== 'up') this.#refuse('kernel_start_failed', 'The kernel did not start in time.');
    });
  }

  /** Null until the process was forked. */
  get pid(): number | null {
    return this.#pid;
  }

  get node(): string | null {
    return this.#node;
  }

  get inFlight(): number | null {
    return this.#commands.inFlight;
  }

  get queuedBytes(): number {
    return this.#state === 'gone' ? 0 : this.#child.sender.queuedBytes + this.#calls.questionBytes;
  }

  execute(request: Parameters<Kernel['execute']>[0]): number {
    return this.#command('execute-cells', request);
  }

  configure(configs: Parameters<Kernel['configure']>[0]): number {
    return this.#command('update-cell-config', { configs: toMarimoConfigs(configs) });
  }

  scratchpad(request: Parameters<Kernel['scratchpad']>[0]): number {
    return this.#command('execute-scratchpad', executeScratchpad(request));
  }

  findErrors({ cellIds, codes }: Parameters<Kernel['findErrors']>[0]): number {
    return this.#command('edit-cells', { codes, configs: {}, deleteIds: [], judge: cellIds });
  }

  edit(edits: Parameters<Kernel['edit']>[0]): number {
    return this.#command('edit-cells', editCells(edits));
  }

  element(command: Parameters<Kernel['element']>[0]): number {
    return this.#command(command.type, elementCommand(command));
  }

  complete(request: CompletionRequest): void {
    if (this.#state !== 'up') return;
    this.#waitingCompletion = request;
    this.#sendWaiting();
  }

  follow(page: number | null): void {
    if (this.#state !== 'up') return;
    // When the last page has left, no page needs its state any more.
    this.#waitingPages = page === null ? [0] : [...this.#waitingPages.slice(1 - MAX_WAITING_PAGES), page];
    this.#sendWaiting();
  }

  answerCall(id: number, parts: readonly (string | Uint8Array)[]): void {
    this.#calls.answer(id, callFrame(id, parts));
  }

  interrupt(): boolean {
    if (this.#state !== 'up' || !this.#commands.interrupt()) return false;
    this.#calls.widen(true);
    return true;
  }

  kill(): void {
    if (this.#state === 'gone') return;
    this.#asked ??= 'kill';
    this.#child.kill();
  }

  stop(): void {
    if (this.#state === 'gone' || this.#asked !== null) return;
    this.#asked = 'stop';
    if (this.#state !== 'up') {
      this.kill();
      return;
    }
    this.#commands.interrupt();
    this.#child.sender.send(controlFrame(0, 'stop-kernel', {}));
    this.#child.resume();
    this.#after(STOP_MS, () => this.kill());
  }

  pause(): void {
    this.#isPaused = true;
    if (this.#state === 'up') this.#child.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#child.resume();
  }

  #command(type: string, fields: Readonly<Record<string, unknown>>): number {
    invariant(this.#state === 'up', 'A kernel gets commands only while it is up.', this.id);
    const seq = this.#commands.give(type, fields);
    this.#work.begin();
    return seq;
  }

  /** Sends the requests of pages, as long as the kernel takes them. */
  #sendWaiting(): void {
    const { sender } = this.#child;
    while (this.#waitingPages.length > 0 && sender.isIdle) {
      const [page = 0] = this.#waitingPages.splice(0, 1);
      sender.send([followFrame(page)]);
    }
    const completion = this.#waitingCompletion;
    if (completion === undefined || !sender.isIdle) return;
    this.#waitingCompletion = undefined;
    sender.send(completionFrame(completion));
    this.#work.begin();
    if (this.inFlight === null) this.#work.end();
  }

  /** Returns a way of reading frames that notes the sizes of questions. */
  #measured({ parse, parseLarge, ...reading }: FrameReading): FrameReading {
    const noted = (value: unknown, bytes: number): unknown => {
      if (isRecord(value) && value.op === 'kernel-call') this.#questionBytes.set(value, bytes);
      return value;
    };
    return {
      ...reading,
      parse: (body) => noted(parse(body), body.length),
      ...(parseLarge !== undefined && {
        *parseLarge(body) {
          return noted(yield* parseLarge(body), body.length);
        },
      }),
    };
  }

  #request(): ChildRequest {
    this.#state = 'forking';
    this.#port.oomWatch.hasKilled(); // forgets kills that happened before this kernel
    return this.#port.request();
  }

  #receive(values: readonly unknown[]): void {
    const batch: KernelMessage[] = [];
    try {
      for (const value of values) {
        if (this.#state === 'gone') break;
        this.#take(decodeMessage(value), batch);
      }
    } finally {
      if (batch.length > 0) this.#sink.messages(batch);
    }
    this.#becomeUp();
  }

  #take(message: KernelMessage, batch: KernelMessage[]): void {
    if (message.op === 'bridge-done') {
      const isOurs = this.#commands.settle(message);
      // A report about a seq that is not in flight is forged, or is the late end of a command whose
      // end was reported before.
      if (message.seq !== null && !isOurs) return;
      if (isOurs && !this.#isOpened) {
        this.#mark('openedAt');
        this.#isOpened = true;
      }
      if (isOurs) {
        this.#calls.widen(false);
        this.#work.end();
      }
    } else if (message.op === 'kernel-call') {
      this.#calls.begin(message.id, this.#questionBytes.get(message.fields) ?? 0);
    } else if (message.op === 'bridge-ready' && this.#state === 'forking') {
      this.#mark('readyAt');
      this.#state = 'opening';
      this.#commands.give('create-notebook', createNotebook(this.#launch));
      this.#work.begin();
    }
    batch.push(message);
  }

  /** Becomes `up` once the notebook is open and the host has reported the pid, in either order. */
  #becomeUp(): void {
    if (this.#state !== 'opening' || !this.#isOpened || this.#pid === null) return;
    const { startedAt, admittedAt, readyAt, openedAt } = this.#times;
    this.#state = 'up';
    if (this.#isPaused) this.#child.pause();
    const phases = {
      forkMs: admittedAt - startedAt,
      connectMs: readyAt - admittedAt,
      openMs: openedAt - readyAt,
    };
    const durationMs = Math.round(openedAt - startedAt);
    this.#port.log.info({ sessionId: this.id, pid: this.#pid, durationMs }, 'a kernel has started');
    this.#port.metrics?.kernelStarts.of('started').add();
    this.#port.up?.();
    this.#port.metrics?.kernelStartDuration.of().observe(durationMs / 1000);
    try {
      this.#sink.ready({ phases, pid: this.#pid });
    } catch (error) {
      this.#contain(error);
    }
  }

  /** Ends this kernel after a bug of the server in handling its messages, so that no other session is affected. */
  #contain(error: unknown): void {
    this.#port.log.error({ err: error, kernel: this.id }, 'a message of a kernel could not be handled');
    this.#refuse('kernel_protocol_error', 'The kernel sent a message that the server could not read.');
  }

  #onEnded(end: ChildEnd): void {
    if (end.kind === 'broken') this.#refuse('kernel_protocol_error', `The kernel sent ${end.reason}.`);
    else if (end.kind === 'deaf')
      this.#refuse('kernel_protocol_error', 'The kernel did not read what it was sent.');
    else if (end.kind === 'failed') this.#contain(end.error);
    else if (end.kind === 'unavailable')
      this.#refuse('kernel_start_failed', `The kernel did not start: ${end.reason}`);
    else if (end.kind === 'refused')
      this.#refuse(
        'kernel_start_failed',
        `The kernel host refused to start it: ${describeRefusal(end.reason)}`,
      );
    else this.#finish(end.kind === 'lost', end.kind === 'ended' ? end.process : null);
  }

  #refuse(cause: 'kernel_protocol_error' | 'kernel_start_failed', message: string): void {
    this.#refusal ??= { cause, message };
    this.#finish(false, null);
  }

  #finish(hostLost: boolean, end: ProcessEnd | null): void {
    if (this.#state === 'gone') return;
    const wasReady = this.#state === 'up';
    this.#state = 'gone';
    for (const timer of this.#timers) clearTimeout(timer);
    this.#work[Symbol.dispose]();
    this.#child[Symbol.dispose]();
    this.#waitingCompletion = undefined;
    this.#waitingPages = [];
    this.#port.forget();
    const exit = classifyExit({
      wasReady,
      asked: this.#asked,
      hostLost,
      refusal: this.#refusal,
      end,
      wasOutOfMemory: () => end?.machineOutOfMemory ?? this.#port.oomWatch.hasKilled(),
      limits: this.#port.limits,
    });
    const livedMs = Math.round(performance.now() - this.#times.startedAt);
    const { cause, message } = exit;
    this.#port.log.info(
      { sessionId: this.id, pid: this.#pid, cause, message, livedMs },
      'a kernel has ended',
    );
    if (!wasReady) this.#port.metrics?.kernelStarts.of('failed').add();
    this.#port.metrics?.kernelEnds.of(cause).add();
    this.#sink.exited(exit);
  }

  #after(delayMs: number, act: () => void): void {
    this.#timers.push(setTimeout(act, delayMs));
  }

  #mark(name: Milestone): void {
    this.#times[name] = performance.now();
  }
}
