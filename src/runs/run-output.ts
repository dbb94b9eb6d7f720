/** The output of a run as it is saved: parts that stand in the record, and assets for what is too large to. */
import { createHash } from 'node:crypto';
import { type AssetId, newId } from '#src/core/ids.ts';
import type { AssetRecord } from '#storage/runs.ts';

/** An output of more bytes becomes an asset. */
export const INLINE_LIMIT = 64 * 1024;
/** So does every output once the ones in the record have this many together. */
export const INLINE_TOTAL_LIMIT = 1024 * 1024;

export type ShownOutput =
  | { readonly mimetype: string; readonly data: unknown }
  | { readonly mimetype: string; readonly assetId: AssetId };

/** A value as the kernel or a tool gives it: text, or an object for JSON-like types. */
export interface RawOutput {
  readonly mimetype: string;
  readonly data: unknown;
}

export interface ConsoleEntry {
  readonly channel: string;
  readonly mimetype: string;
  readonly data: unknown;
}

export type CellResultStatus = 'success' | 'error' | 'stopped' | 'cancelled' | 'interrupted' | 'disabled';

export type OutputPart =
  | {
      readonly type: 'cell-result';
      readonly cellId: string;
      readonly status: CellResultStatus;
      readonly outputs: readonly ShownOutput[];
      readonly console: readonly ConsoleEntry[];
      readonly durationMs: number | null;
    }
  | { readonly type: 'assistant-message'; readonly text: string }
  | {
      readonly type: 'tool-call';
      readonly name: string;
      readonly input: unknown;
      readonly output: string;
      readonly status: 'completed' | 'failed' | 'cancelled';
    }
  | { readonly type: 'final-answer'; readonly markdown: string }
  | { readonly type: 'warning'; readonly code: string; readonly message: string }
  | {
      readonly type: 'asset';
      readonly assetId: AssetId;
      readonly mimetype: string;
      readonly bytes: number;
      readonly sha256: string;
    };

export interface RunOutput {
  /** False when the request asked for its output not to be kept; `parts` is then empty. */
  readonly stored: boolean;
  readonly parts: readonly OutputPart[];
  /** Of a prompt: who answered it, in how many steps, and the tokens that took. */
  readonly model?: string;
  readonly steps?: number;
  readonly usage?: TokenUsage;
}

export interface TokenUsage {
  readonly inputTokens: number;
  /** Of these, the ones that the provider had kept from before. */
  readonly cachedInputTokens: number;
  readonly outputTokens: number;
  /** Of these, the ones that went into reasoning. */
  readonly reasoningTokens: number;
}

const MIMEBUNDLE = 'application/vnd.marimo+mimebundle';

/** Collects outputs, and decides for each whether it stands in the record or becomes an asset. */
export class OutputShelf {
  readonly assets = new Map<AssetId, AssetRecord>();
  #inlineTotal = 0;

  /** A cell's output as a list: none when it has no value, one for each type of a bundle. */
  shelve(output: RawOutput | null): ShownOutput[] {
    if (output === null || (output.mimetype === 'text/plain' && output.data === '')) return [];
    return unbundle(output).map(({ mimetype, data }) => this.#place(mimetype, data));
  }

  assetParts(): OutputPart[] {
    return [...this.assets].map(([assetId, { mimetype, bytes, sha256 }]) => ({
      type: 'asset',
      assetId,
      mimetype,
      bytes: bytes.byteLength,
      sha256,
    }));
  }

  #place(mimetype: string, data: unknown): ShownOutput {
    const text = typeof data === 'string' ? data : JSON.stringify(data);
    const size = Buffer.byteLength(text);
    if (size <= INLINE_LIMIT && this.#inlineTotal + size <= INLINE_TOTAL_LIMIT) {
      this.#inlineTotal += size;
      return { mimetype, data };
    }
    const assetId = newId<AssetId>('asset');
    const bytes = fromDataUrl(text) ?? Buffer.from(text);
    this.assets.set(assetId, { mimetype, bytes, sha256: createHash('sha256').update(bytes).digest('hex') });
    return { mimetype, assetId };
  }
}

function unbundle(output: RawOutput): { mimetype: string; data: unknown }[] {
  const { mimetype, data } = output;
  if (mimetype !== MIMEBUNDLE) return [{ mimetype, data }];
  const bundle: unknown = typeof data === 'string' ? parseOr(data, null) : data;
  if (bundle === null || typeof bundle !== 'object' || Array.isArray(bundle)) return [{ mimetype, data }];
  return Object.entries(bundle)
    .filter(([type]) => type.includes('/'))
    .map(([type, value]) => ({ mimetype: type, data: value }));
}

function parseOr<T>(text: string, otherwise: T): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return otherwise; // notebook code can emit anything under any type; it is then shown as it came
  }
}

/** The bytes of a base64 data URL, so that an image is served as an image. */
function fromDataUrl(text: string): Buffer | undefined {
  const match = /^data:[^,;]*;base64,/.exec(text.slice(0, 200));
  return match === null ? undefined : Buffer.from(text.slice(match[0].length), 'base64');
}
