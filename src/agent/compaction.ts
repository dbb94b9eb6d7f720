/** Keeps the input of a model within its limit: first the oldest tool outputs are left out, then whole exchanges. */

import type { ToolResultPart } from '#src/contract/wire/agent.ts';
import type { StoredEntry } from './entry.ts';
import { MAX_SHOWN_IMAGES } from './messages.ts';

export interface CompactedEntries {
  readonly entries: readonly StoredEntry[];
  /** Tool outputs that were left out. */
  readonly outputs: number;
  /** The number of prompts that were left out, each with its answer. */
  readonly prompts: number;
}

export const LEFT_OUT = '[This output was left out to save room. Call the tool again if it is needed.]';

const CHARACTERS_PER_TOKEN = 4;
const IMAGE_TOKENS = 1_500;
const ENTRY_TOKENS = 10;

/** Estimates the tokens of an entry of which the model sees at most `maxImages` pictures. */
export function tokensOf({ entry }: StoredEntry, maxImages = Number.POSITIVE_INFINITY): number {
  let characters = 0;
  let images = 0;
  for (const part of entry.content) {
    if (part.type === 'tool-call') characters += part.name.length + (JSON.stringify(part.input)?.length ?? 0);
    else if (part.type === 'tool-result') {
      characters += part.output.length;
      images += part.images.length;
    } else characters += part.text.length;
  }
  return (
    ENTRY_TOKENS + Math.ceil(characters / CHARACTERS_PER_TOKEN) + Math.min(images, maxImages) * IMAGE_TOKENS
  );
}

/** Returns the entries that fit into `budgetTokens`. The current prompt and the outputs of its last step are always kept. */
export function compactEntries(entries: readonly StoredEntry[], budgetTokens: number): CompactedEntries {
  const kept = [...entries];
  const images = shownImages(entries);
  let total = kept.reduce((sum, entry, i) => sum + tokensOf(entry, images[i]), 0);
  let outputs = 0;
  const lastAnswer = kept.findLastIndex(({ entry }) => entry.role === 'assistant');
  for (let i = 0; i < lastAnswer && total > budgetTokens; i++) {
    const before = kept[i];
    if (before?.entry.role !== 'tool') continue;
    const after = withoutOutput(before);
    if (after === before) continue;
    total -= tokensOf(before, images[i]) - tokensOf(after);
    kept[i] = after;
    outputs++;
  }
  let prompts = 0;
  let first = 0;
  while (total > budgetTokens) {
    const next = kept.findIndex(({ entry }, i) => i > first && entry.role === 'user');
    if (next < 0) break;
    for (let i = first; i < next; i++) total -= tokensOf(kept[i]!, images[i]);
    first = next;
    prompts++;
  }
  return { entries: kept.slice(first), outputs, prompts };
}

/** Returns, for each entry, how many of its pictures are sent. Only the last pictures of the whole conversation are. */
function shownImages(entries: readonly StoredEntry[]): number[] {
  const shown: number[] = [];
  let left = MAX_SHOWN_IMAGES;
  for (let i = entries.length - 1; i >= 0; i--) {
    let images = 0;
    for (const part of entries[i]!.entry.content)
      images += part.type === 'tool-result' ? part.images.length : 0;
    shown[i] = Math.min(images, left);
    left -= shown[i]!;
  }
  return shown;
}

function withoutOutput(kept: StoredEntry): StoredEntry {
  let isShorter = false;
  const shortened = (part: ToolResultPart): ToolResultPart => {
    if (part.images.length === 0 && part.output.length <= LEFT_OUT.length) return part;
    isShorter = true;
    return { ...part, output: LEFT_OUT, images: [] };
  };
  const content = kept.entry.content.map((part) => (part.type === 'tool-result' ? shortened(part) : part));
  return isShorter ? { ...kept, entry: { ...kept.entry, content } } : kept;
}
