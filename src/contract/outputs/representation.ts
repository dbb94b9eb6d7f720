/**
 * Decides which representation of an output is shown to whom. An output has data of one media type,
 * or of several (a bundle). The server adds its text and its rows, which the kernel made from the
 * value (`src/confined/python/outputs/output_text.py`, `output_table.py`). Command line, agents and
 * console show the representation that `representationFor` chooses, each in its own way.
 */
import type { OutputTable } from '../wire/output.ts';
import { errorsText } from './error-text.ts';
import { parsedOrText } from './python-json.ts';

/** `terminal`: the command line. `model`: text and pictures for a language model. `page`: HTML in a browser. */
export type Audience = 'terminal' | 'model' | 'page';

export interface ShownValue {
  readonly mimetype: string;
  readonly data?: unknown;
  /** The value as plain text, such as its `repr`, cut off if it is long. */
  readonly text?: string | undefined;
  readonly table?: OutputTable | undefined;
}

export type Representation =
  | { readonly kind: 'table'; readonly table: OutputTable }
  /** Lines that say why a cell failed. */
  | { readonly kind: 'error'; readonly text: string }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'data'; readonly mimetype: string; readonly data: unknown };

const BUNDLE = 'application/vnd.marimo+mimebundle';
const ERRORS = 'application/vnd.marimo+error';
const TRACEBACK = 'application/vnd.marimo+traceback';

interface Preference {
  /**
   * The members of a bundle in their order of preference. A type that is not named has the place of
   * its wildcard.
   */
  readonly order: readonly string[];
  /** Types for which the server's text says more than the data, or the same in less space. */
  readonly asText: ReadonlySet<string>;
}

const PREFERENCES: Readonly<Record<Audience, Preference>> = {
  // For a terminal, HTML is read because it has structure and colours, and its pictures are saved.
  // For JSON the text is preferred, because it is Python's, in which a tuple is not a list.
  terminal: {
    order: ['image/*', 'text/html', '*/*', 'text/markdown', 'application/json', 'text/plain'],
    asText: new Set(['application/json']),
  },
  // Models get these pictures.
  model: {
    order: [
      ...['image/png', 'image/jpeg', 'image/gif', 'image/webp'],
      ...['text/markdown', 'text/plain', 'application/json', 'text/html', '*/*'],
    ],
    asText: new Set(['application/json', 'text/html', 'text/markdown', TRACEBACK]),
  },
  page: {
    order: [
      ...['image/png', 'image/svg+xml', 'image/*', 'text/html'],
      ...['text/markdown', 'text/plain', 'application/json', '*/*'],
    ],
    asText: new Set(['application/json', TRACEBACK]),
  },
};

/** Returns the representation of an output that is most informative for this audience. */
export function representationFor(value: ShownValue, audience: Audience): Representation {
  const { mimetype, data = null, text, table } = value;
  // The server gives a table no rows when its first row is too long.
  if (table !== undefined && (table.rows.length > 0 || table.rowCount === 0)) return { kind: 'table', table };
  if (mimetype === ERRORS) return { kind: 'error', text: errorsText(data, text) };
  if (mimetype === BUNDLE) {
    const member = preferred(membersOf(data), audience);
    return member === undefined ? { kind: 'text', text: text ?? '' } : representationFor(member, audience);
  }
  // If the kernel did not have the value, the text is the same as the data, and the data are not
  // cut off.
  if (text !== undefined && text !== data && PREFERENCES[audience].asText.has(mimetype))
    return { kind: mimetype === TRACEBACK ? 'error' : 'text', text };
  return { kind: 'data', mimetype, data };
}

/** Returns the value of the most informative media type for this audience; undefined if there is none. */
export function preferred<Value extends { readonly mimetype: string }>(
  values: readonly Value[],
  audience: Audience,
): Value | undefined {
  const { order } = PREFERENCES[audience];
  const rankOf = ({ mimetype }: Value) => {
    const ranks = [mimetype, `${mimetype.split('/', 1)[0]}/*`, '*/*'].map((type) => order.indexOf(type));
    return ranks.find((rank) => rank !== -1) ?? order.length;
  };
  return values.toSorted((a, b) => rankOf(a) - rankOf(b))[0];
}

/** Returns the members of a bundle, without its metadata. A bundle in a bundle is not read. */
function membersOf(data: unknown): ShownValue[] {
  const bundle = parsedOrText(data);
  if (typeof bundle !== 'object') return [{ mimetype: 'text/plain', data: bundle }];
  return Object.entries(Object(bundle))
    .filter(([mimetype]) => mimetype.includes('/') && mimetype !== BUNDLE)
    .map(([mimetype, member]) => ({ mimetype, data: member }));
}
