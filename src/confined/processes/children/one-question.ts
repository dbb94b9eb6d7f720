/** A child of the kernel host that gets one question and ends with its answer. */
import type { ChildEnd, ChildStarter } from '../confined-child.ts';
import { encodeLongFrame } from '../frame-decoder.ts';
import { asRecord } from '../json-shape.ts';
import type { ChildRequest, Confinement } from '../launch-order.ts';

type Message = Readonly<Record<string, unknown>>;

/** How such a child has ended: the message with its answer, or the reason why there is none. */
export type QuestionEnd =
  | { readonly kind: 'answered'; readonly message: Message }
  | { readonly kind: 'too-slow' }
  | ChildEnd;

export interface OneQuestion {
  readonly request: (confinement: Confinement | null) => ChildRequest;
  readonly question: unknown;
  /**
   * The `op` of the message in which the child asks for the question, and the `op` of its answer.
   */
  readonly readyOp: string;
  readonly answerOp: string;
  readonly timeoutMs: number;
}

const QUESTION = 1;

/**
 * Starts a child and asks it one question. Always resolves, once the child has ended. `read` may
 * throw when an answer has the wrong shape.
 */
export function askOnce<T>(
  host: ChildStarter,
  { request, question, readyOp, answerOp, timeoutMs }: OneQuestion,
  read: (end: QuestionEnd) => T,
): Promise<T> {
  return new Promise((resolve) => {
    const settle = (end: QuestionEnd) => {
      const result = read(end);
      clearTimeout(timeout);
      child[Symbol.dispose]();
      resolve(result);
    };
    const timeout = setTimeout(() => settle({ kind: 'too-slow' }), timeoutMs);
    const child = host.startChild(request, {
      received: (values) => {
        for (const value of values) {
          const message = asRecord(value, 'the message');
          if (message.op === readyOp) child.sender.send(encodeLongFrame(QUESTION, question));
          else if (message.op === answerOp) settle({ kind: 'answered', message });
        }
      },
      ended: settle,
    });
  });
}
