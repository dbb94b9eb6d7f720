/**
 * The cells of a notebook as marimo's front end shows them, in Troupe's page and in the page of
 * marimo's own server.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Frame } from 'playwright-core';

/** One cell as it is shown. */
export interface ShownCell {
  readonly code: string;
  readonly isFailed: boolean;
  readonly output: string;
  readonly console: string;
  /** How many elements of marimo, pictures and tables the output has, by their names. */
  readonly elements: Readonly<Record<string, number>>;
}

/** A page may show nothing for a while before it is connected. */
const MIN_POLLS = 4;
const SAME_POLLS = 4;
const POLL_MS = 500;

/** Runs in the page. Elements of marimo have shadow roots of their own, which `innerText` leaves out. */
const READ = `(() => {
  const walk = (node, visit) => {
    if (visit(node) === false) return;
    for (const child of node.shadowRoot?.childNodes ?? []) walk(child, visit);
    for (const child of node.childNodes) walk(child, visit);
  };
  const textOf = (root) => {
    const pieces = [];
    if (root) walk(root, (node) => {
      if (node.nodeType === 1 && /^(style|script|title|desc)$/i.test(node.localName)) return false;
      if (node.nodeType === 1 && node.closest('.cm-editor, svg defs')) return false;
      if (node.nodeType === 3) pieces.push(node.data);
    });
    return pieces.join(' ').replace(/\\s+/g, ' ').trim();
  };
  const countsOf = (root) => {
    const counts = {};
    if (root) walk(root, (node) => {
      if (node.nodeType !== 1) return;
      const name = node.localName;
      if (name.startsWith('marimo-') || /^(img|canvas|table|video|audio|iframe)$/.test(name)) counts[name] = (counts[name] ?? 0) + 1;
    });
    return counts;
  };
  const cells = [...document.querySelectorAll('[id^="cell-"][data-cell-id], [data-cell-id][data-status]')]
    .filter((cell, at, all) => all.findIndex((one) => one.dataset.cellId === cell.dataset.cellId) === at);
  return JSON.stringify({
    isBusy: cells.length === 0 || cells.some((cell) => textOf(document.getElementById('output-' + cell.dataset.cellId)).includes('Loading chart')) || document.querySelector('[data-status="running"], [data-status="queued"]') !== null,
    cells: cells.map((cell) => {
      const output = document.getElementById('output-' + cell.dataset.cellId);
      const printed = cell.querySelector('[data-testid="console-output-area"]');
      return {
        code: textOf(cell.querySelector('.cm-content')).slice(0, 80),
        isFailed: cell.classList.contains('has-error') || cell.querySelector('.has-error') !== null,
        output: textOf(output), console: textOf(printed), elements: countsOf(output),
      };
    }),
  });
})()`;

/**
 * Resolves with the cells once nothing runs and nothing changes, and with whether that happened
 * within the time.
 */
export async function shownCells(
  frame: Frame,
  maxMs: number,
): Promise<{ readonly cells: readonly ShownCell[]; readonly isSettled: boolean }> {
  const endMs = performance.now() + maxMs;
  let last = '';
  let same = 0;
  for (let polls = 0; ; polls++) {
    const text = await frame.evaluate<string>(READ);
    const { isBusy, cells } = JSON.parse(text) as { isBusy: boolean; cells: ShownCell[] };
    same = text === last && !isBusy ? same + 1 : 0;
    last = text;
    const isSettled = same >= SAME_POLLS && polls >= MIN_POLLS;
    if (isSettled || performance.now() > endMs) return { cells, isSettled };
    await sleep(POLL_MS);
  }
}

/** Returns a text without the parts that differ from one run to the next. */
function comparable(text: string): string {
  return text
    .replace(/0x[0-9a-f]+/gi, '0x…')
    .replace(/marimo:\/\/.*?#cell=/g, 'marimo://…#cell=')
    .replace(/ ?(?:Launch debugger|Get help)/g, '') // buttons that Troupe does not offer
    .replace(/\b[0-9a-f]{8}-[0-9a-f-]{27}\b/g, '…')
    .replace(/\/(?:tmp|work|home|root)\/[^\s'",)]*/g, '/…')
    .replace(/\b\d+(?:\.\d+)?(?:e-\d+)? ?(?:ms|µs|us|ns|s|seconds)\b/g, '… s');
}

/**
 * Returns the differences between two views of one notebook: the number of each cell, and a
 * description of the difference.
 */
export function differencesOf(ours: readonly ShownCell[], theirs: readonly ShownCell[]): string[] {
  if (ours.length !== theirs.length) return [`${ours.length} cells, marimo ${theirs.length}`];
  return ours.flatMap((own, at) => {
    const other = theirs[at] as ShownCell;
    const found: string[] = [];
    if (own.isFailed !== other.isFailed) found.push(own.isFailed ? 'an error' : 'no error');
    for (const part of ['output', 'console'] as const) {
      const [one, two] = [comparable(own[part]), comparable(other[part])];
      if (one !== two) found.push(`${part}: ${differingPart(one, two)}`);
    }
    const [one, two] = [own.elements, other.elements].map((counts) =>
      Object.entries(counts)
        .map(([name, count]) => `${count} ${name}`)
        .sort()
        .join(', '),
    );
    if (one !== two) found.push(`elements: ${one || 'none'}, marimo ${two || 'none'}`);
    return found.map((difference) => `cell ${at + 1}: ${difference}`);
  });
}

const MAX_SHOWN = 160;

function differingPart(one: string, two: string): string {
  let from = 0;
  while (from < one.length && one[from] === two[from]) from++;
  const start = Math.max(0, from - 20);
  const part = (text: string) => `“${text.slice(start, start + MAX_SHOWN)}”`;
  return `${part(one)}, marimo ${part(two)}`;
}
