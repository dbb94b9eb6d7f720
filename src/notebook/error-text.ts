import type { CellError } from '#src/kernel/messages.ts';

/** What an error says to people. `labelOf` returns what a cell is called, which is its id if nothing is given. */
export function errorText(error: CellError, labelOf: (cellId: string) => string = String): string {
  switch (error.type) {
    case 'multiple-defs':
      return `${error.name ?? 'A name'} is also defined in ${error.cells?.map((id) => labelOf(id)).join(', ')}`;
    case 'cycle':
      return `the cells depend on each other in a cycle${cycleText(error, labelOf)}`;
    case 'setup-refs':
      return 'the setup cell depends on other cells';
    case 'interruption':
      return 'this was interrupted';
    default:
      return error.msg ?? error.type;
  }
}

/** Returns the cells of a cycle with the names that lead from one to the next, or nothing when they are not known. */
function cycleText({ edges_with_vars: edges = [] }: CellError, labelOf: (cellId: string) => string): string {
  const steps = edges.flatMap((edge) => {
    if (!Array.isArray(edge) || typeof edge[0] !== 'string' || typeof edge[2] !== 'string') return [];
    const names: readonly unknown[] = Array.isArray(edge[1]) ? edge[1] : [];
    return [`${labelOf(edge[0])} → ${labelOf(edge[2])} by ${names.map(String).join(', ')}`];
  });
  return steps.length === 0 ? '' : ` (${steps.sort().join('; ')})`;
}
