import type { Variables } from '#src/confined/processes/kernel/messages.ts';

export type VariableGraph = Variables['variables'];
type Variable = VariableGraph[number];

/**
 * Which cells need which other cells, by the variables that the kernel knows of. Pairs of a cell that uses a variable and a cell
 * that declares it are not stored: there may be so many cells for one variable that the pairs would fill the memory of the
 * server. Each search looks at every variable at most once.
 */
export class Dependencies {
  readonly #variables: VariableGraph;
  readonly #hasCell: (cellId: string) => boolean;
  #used: Map<string, Variable[]> | undefined;
  #declared: Map<string, Variable[]> | undefined;

  /** `hasCell`: whether the notebook has a cell. Other cells in variables are ignored. */
  constructor(variables: VariableGraph, hasCell: (cellId: string) => boolean) {
    this.#variables = variables;
    this.#hasCell = hasCell;
  }

  /** Returns these cells and all cells that they need, directly or through others. */
  ancestors(cellIds: Iterable<string>): Set<string> {
    this.#used ??= this.#group(({ usedBy }) => usedBy);
    const found = new Set<string>();
    const walked = new Set<Variable>();
    const open = [...cellIds];
    for (let id = open.pop(); id !== undefined; id = open.pop()) {
      if (found.has(id) || !this.#hasCell(id)) continue;
      found.add(id);
      for (const variable of this.#used.get(id) ?? []) {
        if (walked.has(variable)) continue;
        walked.add(variable);
        for (const owner of variable.declaredBy) open.push(owner); // too many for the arguments of one call
      }
    }
    return found;
  }

  /**
   * Returns, for each cell that needs one of these directly or through others, the first cell among
   * these that it needs.
   */
  firstNeeded(cellIds: Iterable<string>): Map<string, string> {
    this.#declared ??= this.#group(({ declaredBy }) => declaredBy);
    const needed = new Map<string, string>();
    const walked = new Set<Variable>();
    for (const first of cellIds) {
      const open = [first];
      for (let id = open.pop(); id !== undefined; id = open.pop()) {
        for (const variable of this.#declared.get(id) ?? []) {
          if (walked.has(variable)) continue;
          walked.add(variable);
          for (const user of variable.usedBy) {
            if (needed.has(user) || !this.#hasCell(user)) continue;
            needed.set(user, first);
            open.push(user);
          }
        }
      }
    }
    return needed;
  }

  #group(cellsOf: (variable: Variable) => readonly string[]): Map<string, Variable[]> {
    const grouped = new Map<string, Variable[]>();
    for (const variable of this.#variables) {
      for (const cellId of cellsOf(variable)) {
        const known = grouped.get(cellId);
        if (known === undefined) grouped.set(cellId, [variable]);
        else known.push(variable);
      }
    }
    return grouped;
  }
}
