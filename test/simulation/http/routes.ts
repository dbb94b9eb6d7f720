/** Which handler gets a request: the order of uWebSockets.js, in which literal parts win over parameters, and those over the rest. */

interface Node<Handler> {
  readonly literals: Map<string, Node<Handler>>;
  parameter: Node<Handler> | undefined;
  handler: Handler | undefined;
  /** Gets what begins with the path of this node and has more parts. */
  rest: Handler | undefined;
}

export interface Match<Handler> {
  readonly handler: Handler;
  readonly parameters: readonly string[];
}

function newNode<Handler>(): Node<Handler> {
  return { literals: new Map(), parameter: undefined, handler: undefined, rest: undefined };
}

/** The routes of one method. */
export class Routes<Handler> {
  readonly #root: Node<Handler> = newNode();

  add(pattern: string, handler: Handler): void {
    let node = this.#root;
    for (const part of partsOf(pattern)) {
      if (part.endsWith('*')) {
        node.rest = handler;
        return;
      }
      if (part.startsWith(':')) {
        node.parameter ??= newNode();
        node = node.parameter;
        continue;
      }
      let next = node.literals.get(part);
      if (next === undefined) {
        next = newNode();
        node.literals.set(part, next);
      }
      node = next;
    }
    node.handler = handler;
  }

  find(path: string): Match<Handler> | undefined {
    return find(this.#root, partsOf(path), 0, []);
  }
}

function partsOf(path: string): string[] {
  return path.split('/').slice(1); // a list, and what is before its first slash is empty
}

function find<Handler>(
  node: Node<Handler>,
  parts: readonly string[],
  at: number,
  parameters: readonly string[],
): Match<Handler> | undefined {
  const part = parts[at];
  if (part === undefined) return node.handler && { handler: node.handler, parameters };
  const literal = node.literals.get(part);
  const found = literal && find(literal, parts, at + 1, parameters);
  if (found !== undefined) return found;
  const named = node.parameter && find(node.parameter, parts, at + 1, [...parameters, part]);
  return named ?? (node.rest && { handler: node.rest, parameters });
}
