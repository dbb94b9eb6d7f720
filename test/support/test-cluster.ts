import type { Cluster, Topic } from '#src/cluster/cluster.ts';

/** A worker of a cluster that lies in one process: what it is asked and answers passes through JSON. */
export interface TestWorker extends Cluster {
  /** What others have asked it, in order. */
  readonly asked: Topic[];
  /** Keeps back the answers to a question until `answer` is called. */
  holdAnswer(topic: Topic): { answer(): void };
  /** Gives the worker all workspaces, as when the others have died. */
  takeAll(): void;
}

/** Returns `size` workers. `homeOf` returns the number of the worker in which a workspace, or a notebook or conversation of it, is at home; `'*'` is the server. */
export function testCluster(
  size: number,
  homeOf: (workspaceId: string, id?: string) => number,
): TestWorker[] {
  const answers: Map<Topic, (payload: unknown) => unknown>[] = Array.from({ length: size }, () => new Map());
  let homeNow = homeOf;
  const copy = (value: unknown) => JSON.parse(JSON.stringify({ value })).value as unknown;
  const workers = Array.from({ length: size }, (_, worker): TestWorker => {
    const listeners: (() => void)[] = [];
    const held = new Map<Topic, Promise<void>>();
    return {
      worker,
      size,
      living: size,
      incarnation: `test-${worker}`,
      livesElsewhere: (incarnation) => incarnation !== `test-${worker}`,
      isPrimarySilent: false,
      asked: [],
      owns: (workspaceId, id) => homeNow(workspaceId, id) === worker,
      onSlotsTaken: (listener) => void listeners.push(listener),
      onAsked(topic, answer) {
        answers[worker]!.set(topic, async (payload) => {
          await held.get(topic);
          return answer(payload);
        });
      },
      holdAnswer(topic) {
        let answer = () => {};
        held.set(topic, new Promise((resolve) => (answer = resolve)));
        return { answer };
      },
      async askOthers(topic, payload) {
        const all = workers.map(async (other) => {
          if (other.worker === worker) return undefined;
          other.asked.push(topic);
          return copy(await answers[other.worker]!.get(topic)?.(copy(payload)));
        });
        return (await Promise.all(all)).filter((answer) => answer !== undefined);
      },
      takeAll() {
        homeNow = () => worker;
        for (const listener of listeners) listener();
      },
    };
  });
  return workers;
}
