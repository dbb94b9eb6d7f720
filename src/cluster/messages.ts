/**
 * The messages between a primary and its workers, over the channel that Node.js makes between a process and its child.
 */

import type { LocalModelAddress } from '#src/confined/processes/children/local-model.ts';
import type { ProcessEnd } from '#src/confined/processes/exit-classification.ts';
import type { HostHello, HostName, KernelPlace } from '#src/confined/processes/host/zygote-process.ts';
import type { Node, NodeInvitation, NodeList } from '#src/contract/wire/nodes.ts';
import type { SlotTable } from '#src/runtime/homes/slots.ts';

/** The argument with which the primary starts its workers. The number of the worker follows. */
export const WORKER_ARGUMENT = '--worker';

/**
 * The descriptors that a worker inherits, numbered after its standard streams and its channel: the claim on the data
 * directory, the socket for clients, and the unix socket for proxies if the server has one.
 */
export const INHERITED = { claim: 4, listener: 5, proxies: 6 } as const;

export type ToWorker =
  | WorkerOrders
  | { readonly op: 'table'; readonly table: SlotTable }
  /** Asks the worker to listen for clients. */
  | { readonly op: 'admit'; readonly port: number }
  | { readonly op: 'release'; readonly count: number }
  | { readonly op: 'beat' }
  | { readonly op: 'drain'; readonly signal: string }
  /** All draining workers have notified their subscribers. */
  | { readonly op: 'finish' }
  | HostReport
  | { readonly op: 'answer'; readonly request: number; readonly answer: PrimaryAnswers[Question] };

/** The first message to a worker. */
export interface WorkerOrders {
  readonly op: 'begin';
  /** The release of the primary. A worker of another release cannot work with it. */
  readonly version: string;
  readonly worker: number;
  readonly size: number;
  /** Hexadecimal. */
  readonly secret: string;
  readonly table: SlotTable;
  /** The folder of the sockets of workers and kernels. */
  readonly socketFolder: string;
  /** Whether the worker has inherited a unix socket for proxies. */
  readonly servesProxies: boolean;
}

/** `run` numbers the runs of a host: a report about an earlier run is ignored. */
export type HostReport =
  | { readonly op: 'host-up'; readonly host: HostName; readonly run: number; readonly hello: HostHello }
  | { readonly op: 'host-silent'; readonly host: HostName; readonly isSilent: boolean }
  | { readonly op: 'host-lost'; readonly host: HostName; readonly run: number }
  /** Whether a kernel has started: null, or the reason why none starts. */
  | { readonly op: 'host-proof'; readonly host: HostName; readonly problem: string | null }
  /** The host cannot be started. */
  | { readonly op: 'host-failed'; readonly host: HostName; readonly message: string }
  | {
      readonly op: 'child-forked';
      readonly host: HostName;
      readonly id: string;
      readonly pid: number;
      readonly isInit: boolean;
      readonly node: string | undefined;
    }
  /** A kernel node has received the order to start the child. */
  | { readonly op: 'child-placed'; readonly host: HostName; readonly id: string; readonly key: string }
  /** The kernel node of this child is gone. */
  | { readonly op: 'child-lost'; readonly host: HostName; readonly id: string }
  | { readonly op: 'child-ended'; readonly host: HostName; readonly id: string; readonly end: ProcessEnd }
  | { readonly op: 'child-refused'; readonly host: HostName; readonly id: string; readonly reason: string };

/** The questions of a worker to its primary, with their answers. */
export interface PrimaryAnswers {
  /** Asks for the local model to be started if it does not run. The answer has its address, or the reason why it does not run. */
  readonly model: LocalModelAddress | { readonly problem: string };
  /** The last lines that the primary has logged. */
  readonly log: readonly string[];
  /** The kernel nodes. The primary has their connections. */
  readonly 'list-nodes': NodeList;
  readonly 'invite-node': NodeInvitation | undefined;
  readonly 'drain-node': Node | undefined;
  readonly 'remove-node': boolean;
  readonly 'use-of-nodes': readonly (readonly [node: string, use: readonly KernelUse[]])[];
}

/** The use of a kernel with all its processes. */
export interface KernelUse {
  readonly pid: number;
  readonly cpuSeconds: number;
  readonly memoryBytes: number;
}

/** The details of the questions that have some. */
export interface QuestionDetails {
  readonly 'drain-node': { readonly name: string; readonly draining: boolean };
  readonly 'remove-node': { readonly name: string };
}

/** The arguments that follow a question. */
export type Details<Asked extends Question> = Asked extends keyof QuestionDetails
  ? [about: QuestionDetails[Asked]]
  : [];

export type Question = keyof PrimaryAnswers;

export type ToPrimary =
  /** The worker has loaded its program, and waits for its orders. */
  | { readonly op: 'loaded' }
  | { readonly op: 'beat' }
  /** The worker can answer questions of other workers, and has the table with this number. */
  | { readonly op: 'join'; readonly table: number }
  /** The worker has the table with this number. */
  | { readonly op: 'knows'; readonly table: number }
  | { readonly op: 'listening'; readonly url: string }
  /** The worker has released these slots, which the table with this number gives it. */
  | { readonly op: 'released'; readonly table: number; readonly slots: readonly number[] }
  /** The worker drains, and its subscribers have been notified. */
  | { readonly op: 'suspended' }
  /** The worker cannot start, and gives the reason. */
  | { readonly op: 'failed'; readonly message: string }
  | HostOrder
  | AskedQuestion;

export interface AskedQuestion {
  readonly op: 'question';
  readonly request: number;
  readonly question: Question;
  readonly about: unknown;
}

export type HostOrder =
  /** The worker wants the reports of the host from now on, because it has or will have children there. */
  | { readonly op: 'host-wanted'; readonly host: HostName }
  /** The worker no longer needs the host. Its remaining children are ended. */
  | { readonly op: 'host-released'; readonly host: HostName }
  | {
      readonly op: 'child-order';
      readonly host: HostName;
      readonly run: number;
      readonly id: string;
      readonly order: Readonly<Record<string, unknown>>;
      readonly where: KernelPlace | undefined;
    }
  | {
      readonly op: 'child-signal';
      readonly host: HostName;
      readonly run: number;
      readonly id: string;
      readonly signal: number;
    }
  /** A kernel has begun to work, or has ended its work. */
  | {
      readonly op: 'child-busy';
      readonly host: HostName;
      readonly run: number;
      readonly id: string;
      readonly isBusy: boolean;
    };
