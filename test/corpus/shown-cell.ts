/** The outputs of a cell, in a form in which two runs of the same notebook can be compared. */

/** A cell after a run. */
export interface ShownCell {
  readonly id: string;
  readonly code: string;
  readonly status: string;
  readonly outputs: readonly Shown[];
  readonly console: readonly (Shown & { readonly channel: string })[];
}

/** A value of one MIME type. */
export interface Shown {
  readonly mimetype: string;
  readonly data: unknown;
}

/** Members of a cell that are compared. */
export const MEMBERS = ['id', 'code', 'status', 'outputs', 'console'] as const;
export type Member = (typeof MEMBERS)[number];

const REPLACED: readonly (readonly [RegExp, string])[] = [
  [/"?(?:\/[^\s"'<>&]*)?__marimo__cell_(\w+?)_?\.py(?:"|&quot;)?/g, '<cell $1>'],
  [/\/[^\s"'<>&]*\/(site-packages|python3\.\d+)\//g, '<$1>/'],
  [/0x[0-9a-f]{6,}/g, '0x…'],
  [/^\[[WE] \d{6} \d\d:\d\d:\d\d /gm, '[<time> '],
  // Where marimo's front end makes a link to a cell, the server writes the cell's name.
  [/(defined in |name in |\): )(the cell \w+)?$/, '$1<cell>'],
  // The time in summaries of statsmodels.
  [/(\bTime:(?:<[^>]*>|\s)*)\d\d:\d\d:\d\d/g, '$1<time>'],
  // Footnotes are numbered consecutively through all texts of a process.
  [/\bfn(ref)?:\d+-/g, 'fn$1:'],
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '<uuid>'],
  [/\b[0-9a-f]{32}\b/g, '<uuid>'],
];

/**
 * Returns the cell with all parts replaced that differ from run to run: paths, addresses, random
 * ids.
 */
export function comparable(cell: ShownCell, folder: string): ShownCell {
  const text = JSON.stringify(cell, (_, value) =>
    typeof value === 'string' ? plain(value.replaceAll(folder, '<folder>')) : value,
  );
  const { console, outputs, ...rest } = JSON.parse(text) as ShownCell;
  return { ...rest, outputs: outputs.map(asValue), console: joined(console) };
}

/** JSON may come as a value or as its text. */
function asValue({ mimetype, data }: Shown): Shown {
  if (!/[/+]json$/.test(mimetype) || typeof data !== 'string') return { mimetype, data };
  return { mimetype, data: JSON.parse(data) };
}

function plain(text: string): string {
  // Pictures are compared byte by byte, and are too long for a message.
  if (text.startsWith('data:') && text.length > 2000) return text;
  return REPLACED.reduce((result, [pattern, replacement]) => result.replace(pattern, replacement), text);
}

/** Joins consecutive texts of one channel, because a kernel may send printed text in any number of pieces. */
function joined(entries: ShownCell['console']): ShownCell['console'] {
  const result: (ShownCell['console'][number] & { data: unknown })[] = [];
  for (const entry of entries) {
    const last = result.at(-1);
    const isSame = last?.channel === entry.channel && last.mimetype === entry.mimetype;
    if (isSame && typeof last.data === 'string' && typeof entry.data === 'string')
      result[result.length - 1] = { ...last, data: last.data + entry.data };
    else result.push(entry);
  }
  return result;
}
