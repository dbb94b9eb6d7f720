/** The end of a command has the verdicts on cells that may have changed. The view gets the state that all verdicts would give it. */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { CellError, CellStatus, CellVerdict } from '#src/confined/processes/kernel/messages.ts';
import { NotebookView, shownStatus } from '#src/notebook/open/view.ts';
import { SeededRandom } from '#test/support/random.ts';
import { cellOp, done } from './kernel-messages.ts';

const IDS = ['a', 'b', 'c', 'd', 'e'];
const STATUSES: readonly CellStatus[] = ['success', 'exception', 'cancelled', 'interrupted', null];
const ERRORS: readonly (readonly CellError[])[] = [[], [], [], [{ type: 'cycle' }]];
const VARIABLES = IDS.map((id, at) => ({
  name: `v${id}`,
  declaredBy: [id],
  usedBy: IDS.slice(at + 1, at + 3),
}));

function viewOfCells(): NotebookView {
  const view = new NotebookView(IDS.map((id) => ({ cell_id: id, code: `v${id} = 1`, options: {} })));
  view.setVariables(VARIABLES);
  return view;
}

function shownBy(view: NotebookView): readonly unknown[] {
  return view.cells.map((cell) => [cell.id, shownStatus(cell), cell.stale, cell.ended, cell.structural]);
}

test('verdicts on changed cells lead to the same state as verdicts on all cells', () => {
  for (let seed = 1; seed <= 400; seed++) {
    const random = new SeededRandom(seed);
    const [whole, partial] = [viewOfCells(), viewOfCells()];
    const kernel = new Map<string, CellVerdict>();
    const both = (act: (view: NotebookView) => void) => [whole, partial].forEach(act);
    for (const id of IDS) kernel.set(id, { status: null, stale: true, errors: [] });
    both((view) => view.applyVerdicts(done(Object.fromEntries(kernel))));
    for (let step = 0; step < 60; step++) {
      const id = random.pick(IDS);
      const code = `v${id} = ${random.below(3)}`;
      switch (random.pick(['edit', 'ahead', 'runs', 'delivered', 'op', 'stale', 'end', 'end', 'end'])) {
        case 'edit':
          both((view) => view.setCode(view.get(id)!, code));
          break;
        case 'ahead':
          both((view) => view.setCode(view.get(id)!, code, true));
          break;
        case 'runs':
          both((view) => view.codeRuns(view.get(id)!, code));
          break;
        case 'delivered':
          both((view) => view.codeDelivered(id));
          break;
        case 'op': {
          const status = random.pick(['queued', 'running', 'idle', 'disabled-transitively'] as const);
          both((view) => view.applyCellOp(cellOp(id, { status })));
          break;
        }
        case 'stale': {
          const staleInputs = random.is(0.5);
          both((view) => view.applyCellOp(cellOp(id, { staleInputs })));
          break;
        }
        default: {
          const changed = IDS.filter(() => random.is(0.3));
          for (const one of changed)
            kernel.set(one, {
              status: random.pick(STATUSES),
              stale: random.is(0.4),
              errors: random.pick(ERRORS),
            });
          const before = shownBy(partial);
          whole.applyVerdicts(done(Object.fromEntries(kernel)));
          const told = partial.applyVerdicts(
            done(Object.fromEntries(changed.map((one) => [one, kernel.get(one)!]))),
          );
          assert.deepEqual(shownBy(partial), shownBy(whole), `seed ${seed}, step ${step}`);
          const ids = new Set(told.map((cell) => cell.id));
          for (const [at, state] of shownBy(partial).entries()) {
            const [was, is] = [before[at], state].map((one) =>
              JSON.stringify((one as unknown[]).slice(0, 3)),
            );
            assert.equal(ids.has(IDS[at]!), was !== is, `seed ${seed}, step ${step}, cell ${IDS[at]}`);
          }
        }
      }
    }
  }
});
