import type { Cluster, Topic, WorkersChange } from '#src/runtime/homes/cluster.ts';

/** A worker of a cluster within one process: questions and answers pass through JSON. */
export interface TestWorker extends Cluster {
  /** The questions of other workers, in order. */
  readonly asked: Topic[];
  /** Holds back the answers to a question until `answer` is called. */
  holdAnswer(topic: Topic): { answer(): void };
  /** Gives the worker all workspaces, as when the others have died. */
  takeAll(): void;
  /** Ends the worker. The others are notified, and it answers nothing any more. */
  die(): void;
  /** Starts the worker, which others then know, after it had died. */
  start(): void;
}

/** Returns `size` workers. `homeOf` returns the number of the worker in which a workspace, or a notebook or conversation of it, is at home; `'*'` is the server. */
export function testCluster(
  size: number,
  homeOf: (workspaceId: string, id?: string) => number,
): TestWorker[] {
  const answers: Map<Topic, (payload: unknown) => unknown>[] = Array.from({ length: size }, () => new Map());
  let homeNow = homeOf;
  const living = new Set(answers.keys());
  const listeners: ((change: WorkersChange) => void)[][] = answers.map(() => []);
  const tellOthers = (worker: number, change: WorkersChange) => {
    for (const other of living)
      if (other !== worker) for (const listener of listeners[other]!) listener(change);
  };
  const copy = (value: unknown) => JSON.parse(JSON.stringify({ value })).value as unknown;
  const workers = Array.from({ length: size }, (_, worker): TestWorker => {
    const held = new Map<Topic, Promise<void>>();
    const takers: (() => void)[] = [];
    const ask = async (other: number, topic: Topic, payload: unknown): Promise<unknown> => {
      if (!living.has(other) || !living.has(worker)) return undefined;
      workers[other]!.asked.push(topic);
      const answer = copy(await answers[other]!.get(topic)?.(copy(payload)));
      return living.has(other) ? answer : undefined;
    };
    return {
      worker,
      size,
      get living() {
        return living.size;
      },
      incarnation: `test-${worker}`,
      livesElsewhere: (incarnation) =>
        [...living].some((other) => other !== worker && incarnation === `test-${other}`),
      isPrimarySilent: false,
      asked: [],
      owns: (workspaceId, id) => homeNow(workspaceId, id) === worker,
      onSlotsTaken: (listener) => void takers.push(listener),
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
        const others = [...living].filter((other) => other !== worker);
        const all = await Promise.all(others.map((other) => ask(other, topic, payload)));
        return all.filter((answer) => answer !== undefined);
      },
      async haveOthersAct(topic, payload) {
        const others = [...living].filter((other) => other !== worker);
        const ends = await Promise.allSettled(others.map((other) => ask(other, topic, payload)));
        return ends.every(({ status }) => status === 'fulfilled');
      },
      ask,
      onWorkersChanged: (listener) => void listeners[worker]!.push(listener),
      takeAll() {
        homeNow = () => worker;
        for (const listener of takers) listener();
      },
      die() {
        living.delete(worker);
        tellOthers(worker, { joined: [], gone: [worker] });
      },
      start() {
        living.add(worker);
        tellOthers(worker, { joined: [worker], gone: [] });
      },
    };
  });
  return workers;
}
