/**
 * The messages between a primary and its workers, over the channel that Node.js makes between a process and its child.
 */

import type { ProcessEnd } from '#src/kernel/exit-classification.ts';
import type { LocalModelAddress } from '#src/kernel/local-model.ts';
import type { HostHello } from '#src/kernel/zygote-process.ts';
import type { SlotTable } from './slots.ts';

/** The argument with which the primary starts its workers. The number of the worker follows. */
export const WORKER_ARGUMENT = '--worker';

/**
 * The descriptors that a worker inherits, numbered after its standard streams and its channel: the claim on the data
 * directory, and the socket for clients.
 */
export const INHERITED = { claim: 4, listener: 5 } as const;

/** The kernel host, and the host that has only marimo loaded. */
export type HostName = 'usual' | 'plain';

export type ToWorker =
  | WorkerOrders
  | { readonly op: 'table'; readonly table: SlotTable }
  /** It is to listen for clients now. */
  | { readonly op: 'admit'; readonly port: number }
  | { readonly op: 'release'; readonly count: number }
  | { readonly op: 'beat' }
  | { readonly op: 'drain'; readonly signal: string }
  /** All that drain are suspended. */
  | { readonly op: 'finish' }
  | HostReport
  | { readonly op: 'answer'; readonly request: number; readonly answer: PrimaryAnswers[Question] };

/** The first message to a worker. */
export interface WorkerOrders {
  readonly op: 'begin';
  /** The release of the primary. A worker of another one cannot work with it. */
  readonly version: string;
  readonly worker: number;
  readonly size: number;
  /** Hexadecimal. */
  readonly secret: string;
  readonly table: SlotTable;
  /** Where the sockets of workers and kernels are. */
  readonly socketFolder: string;
}

/** `run` numbers the runs of a host: a report about an earlier run is void. */
export type HostReport =
  | { readonly op: 'host-up'; readonly host: HostName; readonly run: number; readonly hello: HostHello }
  | { readonly op: 'host-silent'; readonly host: HostName; readonly isSilent: boolean }
  | { readonly op: 'host-lost'; readonly host: HostName; readonly run: number }
  /** Whether a kernel has started: null, or why none does. */
  | { readonly op: 'host-proof'; readonly host: HostName; readonly problem: string | null }
  /** It cannot be started. */
  | { readonly op: 'host-failed'; readonly host: HostName; readonly message: string }
  | {
      readonly op: 'child-forked';
      readonly host: HostName;
      readonly id: string;
      readonly pid: number;
      readonly isInit: boolean;
    }
  | { readonly op: 'child-ended'; readonly host: HostName; readonly id: string; readonly end: ProcessEnd }
  | { readonly op: 'child-refused'; readonly host: HostName; readonly id: string; readonly reason: string };

/** The questions of a worker to its primary, with their answers. */
export interface PrimaryAnswers {
  /** The local model is to be started, unless it runs: where it is, or why it is not. */
  readonly model: LocalModelAddress | { readonly problem: string };
  /** The last lines that the primary has logged. */
  readonly log: readonly string[];
}

export type Question = keyof PrimaryAnswers;

export type ToPrimary =
  /** It is loaded, and waits for its orders. */
  | { readonly op: 'loaded' }
  | { readonly op: 'beat' }
  /** It can be asked by the others, and knows the table. */
  | { readonly op: 'join'; readonly table: number }
  /** It knows the table. */
  | { readonly op: 'knows'; readonly table: number }
  | { readonly op: 'listening'; readonly url: string }
  /** It has released these slots, as of a table. */
  | { readonly op: 'released'; readonly table: number; readonly slots: readonly number[] }
  /** It drains, and its subscribers have been notified. */
  | { readonly op: 'suspended' }
  /** It cannot start, and says why. */
  | { readonly op: 'failed'; readonly message: string }
  | HostOrder
  | AskedQuestion;

export interface AskedQuestion {
  readonly op: 'question';
  readonly request: number;
  readonly question: Question;
}

export type HostOrder =
  /** It has or will have children of the host, and hears of it from now on. */
  | { readonly op: 'host-wanted'; readonly host: HostName }
  /** It has none any more. Those that there are end. */
  | { readonly op: 'host-released'; readonly host: HostName }
  | {
      readonly op: 'child-order';
      readonly host: HostName;
      readonly run: number;
      readonly id: string;
      readonly order: Readonly<Record<string, unknown>>;
    }
  | {
      readonly op: 'child-signal';
      readonly host: HostName;
      readonly run: number;
      readonly id: string;
      readonly signal: number;
    };
