/**
 * Where Troupe intentionally differs from marimo 0.25.2. A test checks that docs/api.md gives the
 * same reasons.
 */

const UNRUN =
  'Cells that were created or edited but not run, and their dependents, are stale: running a dependent runs them first. marimo shows dependents as fresh, although they have old values or none.';
const OLD_ERRORS =
  'Structural errors that the notebook had before, in cells that the code does not touch, do not make the code fail. marimo counts them with every edit.';

/** The member of the result that differs, and the reason, by the name of the situation. */
export const DIFFERENCES: Readonly<Record<string, { readonly member: string; readonly reason: string }>> = {
  'cells are created in a chain, before, after and at the end': { member: 'success', reason: UNRUN },
  'only the requested cell runs, with its stale ancestors': { member: 'success', reason: UNRUN },
  'a cell after one that fails': { member: 'success', reason: UNRUN },
  'an edit next to an old double definition': { member: 'success', reason: OLD_ERRORS },
};
