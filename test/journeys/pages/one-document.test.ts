/**
 * Two pages, the store and the kernel have copies of one notebook, while two people, runs and an
 * agent change it.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { DocumentChange } from '#src/confined/processes/kernel/messages.ts';
import { callCode } from '#test/support/code-call.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { NotebookPageClient } from '#test/support/notebook-page.ts';
import { eventually } from '#test/support/processes.ts';
import { SeededRandom } from '#test/support/random.ts';
import { startServer } from '#test/support/server-fixture.ts';

const ROUNDS = 200;
const SEED = 20_261_127;
/** After this time marimo's page sends back a text that it has received. */
const REPEATED_AFTER_MS = 400;

const server = await startServer(test);
const { client, baseUrl } = server;

/** The cells in marimo's page: its own changes at once, those of others when it receives them. */
class PageCopy {
  cells: { id: string; code: string }[] = [];
  readonly #page: NotebookPageClient;
  #read = 0;
  /** The texts that the page has yet to send back. */
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #sent: Promise<void>[] = [];

  constructor(page: NotebookPageClient) {
    this.#page = page;
  }

  async open(): Promise<void> {
    const state = await this.#page.follow();
    const codes = state.codes as string[];
    this.cells = (state.cell_ids as string[]).map((id, at) => ({ id, code: codes[at] ?? '' }));
    this.#read = this.#page.messages.length;
  }

  /** Changes the page, and sends the change. */
  edit(change: DocumentChange): void {
    this.#apply(change);
    this.#send(change);
  }

  run(cellId: string): void {
    const code = this.cells.find(({ id }) => id === cellId)?.code;
    if (code !== undefined)
      this.#sent.push(this.#page.do('kernel/run', { cellIds: [cellId], codes: [code] }));
  }

  /** Applies the messages that have come. */
  read(): void {
    for (; this.#read < this.#page.messages.length; this.#read++) {
      const { op, transaction } = this.#page.messages[this.#read] as {
        readonly op: string;
        readonly transaction?: { readonly changes: readonly DocumentChange[] };
      };
      if (op !== 'notebook-document-transaction') continue;
      for (const change of transaction?.changes ?? []) {
        this.#apply(change);
        if (change.type === 'set-code') this.#repeatLater(change.cellId);
      }
    }
  }

  /** Resolves once the server has answered all requests. */
  async settled(): Promise<void> {
    await Promise.all(this.#sent.splice(0));
  }

  get isQuiet(): boolean {
    return this.#timers.size === 0;
  }

  #repeatLater(cellId: string): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      this.#repeat(cellId);
    }, REPEATED_AFTER_MS);
    this.#timers.add(timer);
  }

  #repeat(cellId: string): void {
    const cell = this.cells.find(({ id }) => id === cellId);
    if (cell !== undefined) this.#send({ type: 'set-code', cellId, code: cell.code });
  }

  #send(change: DocumentChange): void {
    this.#sent.push(this.#page.do('document/transaction', { changes: [change] }));
  }

  #apply(change: DocumentChange): void {
    if (change.type === 'reorder-cells') {
      const rank = new Map(change.cellIds.map((id, at) => [id, at]));
      const placeOf = ({ id }: { id: string }) => rank.get(id) ?? Number.POSITIVE_INFINITY;
      this.cells.sort((one, other) => placeOf(one) - placeOf(other) || 0);
      return;
    }
    const at = this.cells.findIndex(({ id }) => id === change.cellId);
    const cell = this.cells[at];
    if (change.type === 'set-code' && cell !== undefined) cell.code = change.code;
    if (change.type === 'delete-cell' && cell !== undefined) this.cells.splice(at, 1);
    if (change.type === 'create-cell' && cell === undefined)
      this.#insert({ id: change.cellId, code: change.code }, change);
    if (change.type === 'move-cell' && cell !== undefined) {
      this.cells.splice(at, 1);
      this.#insert(cell, change, at);
    }
  }

  #insert(
    cell: { id: string; code: string },
    { before, after }: { before: string | null; after: string | null },
    otherwise = this.cells.length,
  ): void {
    const anchor = this.cells.findIndex(({ id }) => id === (before ?? after));
    const at = anchor === -1 ? otherwise : before === null ? anchor + 1 : anchor;
    this.cells.splice(at, 0, cell);
  }
}

const AGENT_CELLS = `
import marimo._code_mode as cm
async with cm.get_context() as ctx:
    print([[cell.id, cell.code] for cell in ctx.cells])
`;

test('after 200 rounds of edits by two pages, runs and an agent at once, all copies of the notebook are equal', async () => {
  const notebook = await openNotebook(server, {
    a: 'a = 0',
    b: 'b = 0',
    c: 'c = 0',
    d: 'd = 0',
  });
  await using first = await NotebookPageClient.open(client, baseUrl, notebook.id);
  await using second = await NotebookPageClient.open(client, baseUrl, notebook.id);
  const copies = [new PageCopy(first), new PageCopy(second)];
  for (const copy of copies) await copy.open();
  const random = new SeededRandom(SEED);
  let made = 0;
  let others: Promise<unknown>[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    for (const copy of copies) {
      if (random.is(0.5)) copy.read();
      const cell = random.pick(copy.cells);
      const anchor = random.pick(copy.cells).id;
      const kind = random.next();
      if (kind < 0.1 && copy.cells.length < 30) {
        made++;
        const at = { before: null, after: anchor };
        const code = `n${made} = ${round}`;
        copy.edit({ type: 'create-cell', cellId: `new-${made}`, code, name: '', config: {}, ...at });
      } else if (kind < 0.15 && copy.cells.length > 3) copy.edit({ type: 'delete-cell', cellId: cell.id });
      else if (kind < 0.3) copy.edit({ type: 'move-cell', cellId: cell.id, before: anchor, after: null });
      else if (kind < 0.4) copy.run(cell.id);
      else copy.edit({ type: 'set-code', cellId: cell.id, code: `x${round} = ${random.below(1e6)}` });
    }
    if (round % 10 === 0) others.push(runByApi(notebook.id, `y = ${round}`), agentEdit(notebook.id, round));
    // In half of the rounds, the next one begins before the server has answered.
    if (random.is(0.5)) await Promise.all(copies.map((copy) => copy.settled()));
    if (round % 40 === 39) await Promise.all(others.splice(0));
  }
  await Promise.all(others);
  others = [];
  let last = '';
  await eventually(
    'the kernel, the store and both pages have the same cells',
    async () => {
      for (const copy of copies) {
        copy.read();
        await copy.settled();
      }
      const { status } = await notebook.record();
      if (status !== 'ready' || copies.some(({ isQuiet }) => !isQuiet)) return false;
      const { serialization } = await client.notebooks.get(notebook.id);
      const saved = JSON.stringify(serialization.cells.map(({ cell_id, code }) => [cell_id, code]));
      const shown = copies.map(({ cells }) => JSON.stringify(cells.map(({ id, code }) => [id, code])));
      const inKernel = await cellsInKernel(notebook.id);
      last = [saved, ...shown, JSON.stringify(inKernel)].join('\n');
      return (
        shown.every((cells) => cells === saved) &&
        inKernel !== undefined &&
        byText(inKernel) === byText(JSON.parse(saved) as Cells)
      );
    },
    60_000,
  ).catch((error: unknown) => {
    throw new Error(`The copies differ:\n${last}`, { cause: error });
  });
  await notebook.close();
});

/** The id and the code of each cell. */
type Cells = readonly (readonly [string, string])[];

const byText = (cells: Cells) => JSON.stringify(cells.map(([id, code]) => `${id} ${code}`).sort());

/** Resolves with the cells that the kernel knows; undefined while a queued run of a page keeps the session busy. */
async function cellsInKernel(notebookId: string): Promise<Cells | undefined> {
  const told = await callCode(client, notebookId, AGENT_CELLS).catch(refused);
  if (told === undefined) return undefined;
  assert.equal(told.success, true, JSON.stringify(told));
  return JSON.parse(told.stdout.replaceAll("'", '"')) as Cells;
}

/** Runs the first cell with new code, when the session takes it. */
async function runByApi(notebookId: string, code: string): Promise<void> {
  const [cell] = (await client.notebooks.get(notebookId)).serialization.cells;
  if (cell === undefined) return;
  const body = { type: 'cells', cells: [{ cellId: cell.cell_id, code }], structuralErrors: 'skip' } as const;
  await client.executions.submit(notebookId, body).catch(refused);
}

/** Changes a cell and makes another one, as an agent does. */
async function agentEdit(notebookId: string, round: number): Promise<void> {
  const code = `
import marimo._code_mode as cm
async with cm.get_context() as ctx:
    ctx.create_cell("agent_${round} = ${round}")
    ctx.edit_cell(ctx.cells[0].id, "by_agent = ${round}")
`;
  await callCode(client, notebookId, code).catch(refused);
}

/** A busy session and a missing cell lead to refusals with these reasons. */
function refused(error: unknown): void {
  assert.match(String(Object(error).code), /^(session_busy|unknown_cell|structural_error)$/, String(error));
}
