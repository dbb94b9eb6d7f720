/** Where we answer otherwise than marimo 0.25.2, on purpose. The README has the reasons; a test holds it to them. */

const UNRUN =
  'Cells that were created or edited and not run, and what depends on them, are stale: who asks for a dependent runs them first. marimo leaves dependents fresh, with the old values or none.';
const OLD_ERRORS =
  'Structural errors that the notebook had before, in cells that the code does not touch, do not make the code fail. marimo counts them with every edit.';

export const DIFFERENCES: Readonly<Record<string, { readonly member: string; readonly reason: string }>> = {
  'cells are created in a chain, before, after and at the end': { member: 'success', reason: UNRUN },
  'only what is asked for runs, with its stale ancestors': { member: 'success', reason: UNRUN },
  'a cell behind one that fails': { member: 'success', reason: UNRUN },
  'an edit beside an old double definition': { member: 'success', reason: OLD_ERRORS },
};
