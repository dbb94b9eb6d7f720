import type { CompletionResult } from '#src/confined/processes/kernel/messages.ts';

type Take = (answer: CompletionResult | undefined) => void;

interface WaitingRequest {
  readonly take: Take;
  readonly ask: () => void;
}

/**
 * Requests to a kernel that are not commands, until the kernel has answered them. The server makes the ids of these requests, so
 * no page can use the same ids.
 */
export class KernelAnswers {
  readonly #waiting = new Map<string, WaitingRequest>();

  /**
   * Calls `take` with the answer to a request, or with undefined when the kernel is gone. Calls
   * `ask` when the kernel has answered another request instead, because the kernel may have
   * forgotten this one. Returns a function that ends the wait.
   */
  expect(id: string, take: Take, ask: () => void): () => void {
    this.#waiting.set(id, { take, ask });
    return () => this.#waiting.delete(id);
  }

  /** Returns whether the message is the answer to a request that waits for it. */
  take(answer: CompletionResult): boolean {
    const request = this.#waiting.get(answer.completionId);
    if (request === undefined) for (const { ask } of this.#waiting.values()) ask();
    this.#waiting.delete(answer.completionId);
    request?.take(answer);
    return request !== undefined;
  }

  /** The kernel is gone. */
  lose(): void {
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { take } of waiting) take(undefined);
  }
}
