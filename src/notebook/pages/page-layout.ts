/**
 * The layout of a notebook's app, such as the grid in which its outputs stand. The layout is the option `layout_file` of the app,
 * in the form in which marimo keeps a layout without a file beside the notebook. So an exported notebook has its layout, too.
 */
import { asRecord, textUpTo } from '#src/confined/processes/json-shape.ts';

export interface PageLayout {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Reads the name of a kind of layout. */
const asLayoutType = textUpTo(100);

const BEGINNING = 'data:application/json;base64,';

/** Returns the layout among the options of an app; null when there is none, or it is in a file that the server does not have. */
export function layoutOf(appOptions: Readonly<Record<string, unknown>>): PageLayout | null {
  const { layout_file: file } = appOptions;
  if (typeof file !== 'string' || !file.startsWith(BEGINNING)) return null;
  try {
    return asPageLayout(JSON.parse(Buffer.from(file.slice(BEGINNING.length), 'base64').toString()));
  } catch {
    return null; // somebody else has written it
  }
}

/** Returns the value of the option `layout_file` for a layout. */
export function layoutFile(layout: PageLayout | null): string | null {
  return layout && BEGINNING + Buffer.from(JSON.stringify(layout)).toString('base64');
}

/** Reads a layout. Throws `ShapeError`. */
export function asPageLayout(value: unknown, where = 'layout'): PageLayout {
  const { type, data } = asRecord(value, where);
  return { type: asLayoutType(type, `${where}.type`), data: asRecord(data, `${where}.data`) };
}
