import type { OperatorWarning } from '#src/base/log/operator-warning.ts';
import type { NodeList } from '#src/contract/wire/nodes.ts';

/** How often the nodes are looked at. */
const LOOK_MS = 2000;
const NONE: NodeList = { enabled: false, waiting: 0, engine: null, items: [] };

/** Keeps a recent state of the kernel nodes, at most some seconds old, for warnings and metrics. */
export class NodesWatch implements Disposable {
  readonly #timer: NodeJS.Timeout | undefined;
  /** The last list. */
  latest = NONE;

  /** `list` resolves with the nodes; undefined: the server has none. */
  constructor(list: (() => Promise<NodeList>) | undefined) {
    if (list === undefined) return;
    const look = (): void => {
      list().then(
        (found) => {
          this.latest = found;
        },
        () => undefined, // the process that knows the nodes does not answer; another warning says so
      );
    };
    this.#timer = setInterval(look, LOOK_MS).unref();
    look();
  }

  /** Returns the warnings for operators. */
  warnings(): OperatorWarning[] {
    const { enabled, engine, items, waiting } = this.latest;
    if (!enabled) return [];
    const usable = items.filter(({ state }) => state === 'joined');
    const wrong = items.filter(({ problem }) => problem !== null);
    return [
      // With an engine, such as Ray, having no node is usual: the engine starts one when a kernel waits for it.
      ...(usable.length > 0 || (engine !== null && waiting === 0) ? [] : [NO_NODE]),
      ...(usable.length > 0 && waiting > 0 ? [full(waiting)] : []),
      ...(engine === null || engine.problem === null ? [] : [notStarted(engine.problem)]),
      ...wrong.map(
        ({ name, problem }): OperatorWarning => ({
          kind: 'node_refused',
          text: `The kernel node ${name} takes no kernels: ${problem}`,
        }),
      ),
    ];
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}

const NO_NODE: OperatorWarning = {
  kind: 'nodes_missing',
  text: 'No kernel node takes kernels, so no notebook opens: see `troupe nodes list`, or add a node with `troupe nodes invite`.',
};

function notStarted(text: string): OperatorWarning {
  return { kind: 'nodes_not_started', text };
}

function full(waiting: number): OperatorWarning {
  return {
    kind: 'nodes_missing',
    text: `${waiting} kernels wait, because no kernel node has room: add a node with \`troupe nodes invite\`.`,
  };
}
