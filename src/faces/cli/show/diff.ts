/** The differences of two texts, line by line, as people know them from `diff -u`. */

/** The number of equal lines that are shown around a difference. */
const CONTEXT = 3;
/** The most pairs of lines that are compared. Of texts with more pairs, only the numbers of lines are shown. */
const MAX_PAIRS = 4_000_000;
const MAX_SHOWN_LINES = 80;

interface Line {
  readonly mark: ' ' | '-' | '+';
  readonly text: string;
}

/** Returns the lines that only `after` has, with `+`, and the lines that only `before` has, with `-`; empty when both are equal. */
export function diffText(before: string, after: string): string {
  const [a, b] = [linesOf(before), linesOf(after)];
  const start = a.findIndex((line, at) => line !== b[at]);
  const first = start < 0 ? a.length : start;
  let same = 0;
  while (same < Math.min(a.length, b.length) - first && a.at(-1 - same) === b.at(-1 - same)) same++;
  const [middleA, middleB] = [a.slice(first, a.length - same), b.slice(first, b.length - same)];
  if (middleA.length === 0 && middleB.length === 0) return '';
  if (middleA.length * middleB.length > MAX_PAIRS)
    return `  ${middleA.length} lines differ from ${middleB.length} lines.\n`;
  const lines: Line[] = [
    ...a.slice(Math.max(0, first - CONTEXT), first).map(unchanged),
    ...compared(middleA, middleB),
    ...a.slice(a.length - same, a.length - same + CONTEXT).map(unchanged),
  ];
  return shown(lines);
}

function linesOf(text: string): string[] {
  const lines = text.replace(/\r\n?/g, '\n').split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

function unchanged(text: string): Line {
  return { mark: ' ', text };
}

/** Returns the lines of both, by their longest common subsequence. */
function compared(a: readonly string[], b: readonly string[]): Line[] {
  const width = b.length + 1;
  /** For each pair of lines, how many lines the two texts have in common from there on. */
  const common = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      common[i * width + j] =
        a[i] === b[j]
          ? common[(i + 1) * width + j + 1]! + 1
          : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
  const lines: Line[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push(unchanged(a[i]!));
      i++;
      j++;
    } else if (j >= b.length || (i < a.length && common[(i + 1) * width + j]! >= common[i * width + j + 1]!))
      lines.push({ mark: '-', text: a[i++]! });
    else lines.push({ mark: '+', text: b[j++]! });
  }
  return lines;
}

/** Returns the differences with the lines around them. Other lines are left out. */
function shown(lines: readonly Line[]): string {
  const isNear = (at: number) =>
    lines.slice(Math.max(0, at - CONTEXT), at + CONTEXT + 1).some(({ mark }) => mark !== ' ');
  const out: string[] = [];
  let isGap = false;
  for (const [at, { mark, text }] of lines.entries()) {
    if (mark === ' ' && !isNear(at)) {
      isGap = true;
      continue;
    }
    if (isGap && out.length > 0) out.push('  ⋯');
    isGap = false;
    out.push(`  ${mark} ${text}`);
  }
  const rest = out.length - MAX_SHOWN_LINES;
  return `${out.slice(0, MAX_SHOWN_LINES).join('\n')}\n${rest > 0 ? `  … and ${rest} more lines\n` : ''}`;
}
