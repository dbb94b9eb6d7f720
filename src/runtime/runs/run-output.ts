/** The stored output of a run: parts in the record, and assets for outputs that are too large for it. */
import { type AssetId, newId } from '#src/base/ids.ts';
import type { Output } from '#src/contract/wire/output.ts';
import type { OutputPart } from '#src/contract/wire/run.ts';
import type { Asset } from '#storage/records/assets.ts';
import { OutputContents } from './output-content.ts';

/** An output with more bytes becomes an asset. */
export const MAX_INLINE_BYTES = 64 * 1024;
/** The most bytes of all outputs in the record together. Further outputs become assets. */
export const MAX_INLINE_TOTAL_BYTES = 1024 * 1024;

/** The most bytes of all texts and tables in the record together. Further outputs have no text and no table. */
export const MAX_DESCRIBED_TOTAL_BYTES = 1024 * 1024;

/** A value as a kernel or a tool returns it: text, or an object for types like JSON. */
export type RawOutput = Omit<Output, 'channel' | 'assetId'> & { readonly data: unknown };

const MIMEBUNDLE = 'application/vnd.marimo+mimebundle';

/** Collects outputs, and decides for each whether it is stored in the record or as an asset. */
export class OutputShelf {
  readonly assets = new Map<AssetId, Asset>();
  readonly contents = new OutputContents();
  readonly #keepsAssets: boolean;
  #inlineTotal = 0;
  #describedTotal = 0;
  #omitted = 0;

  /** Without `keepsAssets`, because the disk is full, outputs that would become assets are left out. */
  constructor(keepsAssets = true) {
    this.#keepsAssets = keepsAssets;
  }

  /** Returns a cell's output as a list: empty when it has no value, one entry for each type of a bundle. */
  shelve(output: RawOutput | null): Output[] {
    if (output === null || (output.mimetype === 'text/plain' && output.data === '')) return [];
    const description = this.#describe(output);
    this.contents.take(output);
    return unbundle(output).flatMap(({ mimetype, data }) => {
      const placed = this.#place(mimetype, data);
      return placed === undefined ? [] : [{ ...placed, ...description }];
    });
  }

  /** Returns an entry of a cell's console. Text is bounded already and stays unchanged; a figure is treated like an output. */
  shelveConsole({ channel, ...output }: RawOutput & { readonly channel: string }): Output[] {
    const { mimetype, data } = output;
    if (channel !== 'media') return [{ channel, mimetype, data, ...this.#describe(output) }];
    return this.shelve(output).map((shown) => ({ channel, ...shown }));
  }

  /** Returns the parts that describe the assets. */
  assetParts(): OutputPart[] {
    return [...this.assets].map(([assetId, { mimetype, bytes, sha256 }]) => ({
      type: 'asset',
      assetId,
      mimetype,
      bytes: bytes.byteLength,
      sha256,
    }));
  }

  #describe({ text, table }: RawOutput): Pick<RawOutput, 'text' | 'table'> {
    const size = Buffer.byteLength(text ?? '') + (table === undefined ? 0 : JSON.stringify(table).length);
    if (this.#describedTotal + size > MAX_DESCRIBED_TOTAL_BYTES) return {};
    this.#describedTotal += size;
    return { ...(text === undefined ? {} : { text }), ...(table === undefined ? {} : { table }) };
  }

  /** Returns a warning when outputs were left out. */
  warningParts(): OutputPart[] {
    if (this.#omitted === 0) return [];
    const message = `The disk of the server was full: ${this.#omitted} large outputs of this run were not kept.`;
    return [{ type: 'warning', code: 'storage_full', message }];
  }

  #place(mimetype: string, data: unknown): Output | undefined {
    const text = typeof data === 'string' ? data : JSON.stringify(data);
    const size = this.contents.known(text)?.bytes.byteLength ?? Buffer.byteLength(text);
    if (size <= MAX_INLINE_BYTES && this.#inlineTotal + size <= MAX_INLINE_TOTAL_BYTES) {
      this.#inlineTotal += size;
      return { mimetype, data };
    }
    if (!this.#keepsAssets) {
      this.#omitted++;
      return undefined;
    }
    const assetId = newId<AssetId>('asset');
    this.assets.set(assetId, { mimetype, ...this.contents.of(text) });
    return { mimetype, assetId };
  }
}

/** Returns the warning of a cell whose text was too long. `label` names the cell for people. */
export function omittedTextWarning(cellId: string, label: string, omitted: number): OutputPart {
  const message = `The cell ${label} printed ${omitted} more characters between the beginning and the end kept here.`;
  return { type: 'warning', code: 'console_truncated', message, cellId };
}

/** Returns one value for each type of a bundle; any other output is returned unchanged. */
export function unbundle(output: RawOutput): { mimetype: string; data: unknown }[] {
  const bundle = bundleOf(output);
  if (bundle === undefined) return [{ mimetype: output.mimetype, data: output.data }];
  return Object.entries(bundle)
    .filter(([type]) => type.includes('/'))
    .map(([type, value]) => ({ mimetype: type, data: value }));
}

/** Returns the values of a bundle by their types; undefined for any other output. */
export function bundleOf({ mimetype, data }: RawOutput): Readonly<Record<string, unknown>> | undefined {
  if (mimetype !== MIMEBUNDLE) return undefined;
  const bundle: unknown = typeof data === 'string' ? parseOr(data, null) : data;
  if (bundle === null || typeof bundle !== 'object' || Array.isArray(bundle)) return undefined;
  return bundle as Readonly<Record<string, unknown>>;
}

function parseOr<T>(text: string, otherwise: T): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return otherwise; // notebook code can emit any text under any type; such a text is shown unchanged
  }
}
