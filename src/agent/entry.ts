/** The parts of a conversation: entries as they are served, and the data stored with them for the model's provider. */

import { atOnce } from '#src/base/async/slices.ts';
import { isShortJson, writeJson } from '#src/base/json/json-write.ts';
import type { AgentEntry, PromptOutcome, ToolCallPart, ToolResultPart } from '#src/contract/wire/agent.ts';
import { type EncodedRecord, encodeRecordOfParts } from '#storage/codec.ts';
import { type EntryRecord, entryRecords } from '#storage/records/conversations.ts';

const NO_BYTES = new Uint8Array();

/** Signatures and ids that a provider wants back with a part; null for parts without. */
export type ProviderData = Readonly<Record<string, Readonly<Record<string, unknown>>>> | null;

export interface StoredEntry {
  readonly entry: AgentEntry;
  /** The model that wrote the entry; null for entries of a person or a tool. */
  readonly model: string | null;
  /** The data to return to the provider, one item for each part of the content; empty when there are none. */
  readonly provider: readonly ProviderData[];
}

export function entryText(entry: AgentEntry): string {
  return entry.content.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

/** Returns whether an entry ends an answer: it has text of the model and no calls. */
export function isAnswer({ role, content }: AgentEntry): boolean {
  return role === 'assistant' && !content.some(({ type }) => type === 'tool-call');
}

export function callsOf(entry: AgentEntry): ToolCallPart[] {
  return entry.content.filter((part) => part.type === 'tool-call');
}

/**
 * Matches the calls of one answer with their results. A call id is not unique: some model servers use the same ids in every answer,
 * and a few repeat an id within one answer. The first result with an id belongs to the first call with that
 * id, and so on.
 */
export class ResultsOfAnswer {
  readonly #results = new Map<string, ToolResultPart[]>();

  /** Collects the results between the answer at `index` and the next answer. */
  constructor(entries: readonly (AgentEntry | StoredEntry)[], index: number) {
    for (let i = index + 1; i < entries.length; i++) {
      const one = entries[i]!;
      const { role, content } = 'entry' in one ? one.entry : one;
      if (role === 'assistant') break;
      for (const part of content) {
        if (part.type !== 'tool-result') continue;
        const known = this.#results.get(part.callId);
        if (known === undefined) this.#results.set(part.callId, [part]);
        else known.push(part);
      }
    }
  }

  /** Returns the result of the next call with this id; undefined when none is left. */
  take(callId: string): ToolResultPart | undefined {
    return this.#results.get(callId)?.shift();
  }
}

/**
 * Returns a function that makes ids unique. It returns the id unchanged, or with a number appended when the id is empty or was
 * returned before.
 */
export function distinctIds(): (id: string) => string {
  const taken = new Set(['']);
  let number = 1;
  return (id) => {
    let distinct = id;
    while (taken.has(distinct)) distinct = `${id}_${++number}`;
    taken.add(distinct);
    return distinct;
  };
}

/** Returns the calls of the last answer that have no result, in order. */
export function openCalls(entries: readonly StoredEntry[]): ToolCallPart[] {
  const last = entries.findLastIndex(({ entry }) => entry.role === 'assistant');
  const answer = entries[last];
  if (answer === undefined) return [];
  const results = new ResultsOfAnswer(entries, last);
  return callsOf(answer.entry).filter(({ callId }) => results.take(callId) === undefined);
}

/** Returns the stored form of an entry. A long prompt that was prepared (`prepareStrings`) is not encoded again. */
export function encodeEntry({ entry, model, provider }: StoredEntry): EncodedRecord<EntryRecord> {
  const isPlain = provider.every((data) => data === null);
  const fields = {
    model,
    provider: isPlain ? null : Buffer.from(JSON.stringify(provider)),
    document: NO_BYTES,
  };
  const parts = isShortJson(entry) ? [Buffer.from(JSON.stringify(entry))] : atOnce(writeJson(entry));
  return { kind: entryRecords, bytes: atOnce(encodeRecordOfParts(entryRecords, fields, 'document', parts)) };
}

export function storedEntryOf({ document, model, provider }: EntryRecord): StoredEntry {
  return {
    entry: parse<AgentEntry>(document),
    model,
    provider: provider === null ? [] : parse<ProviderData[]>(provider),
  };
}

/** A mark near the start of the stored JSON of every prompt: `encodeEntry` writes the id and the role first. */
const PROMPT_MARK = '"role":"user"';
const PROMPT_MARK_END = 96;

/**
 * Returns the JSON of an entry for clients, made from its stored JSON. If the run of a prompt ended in another way than its entry
 * says, the outcome is corrected. Only prompts are parsed: `outcomeOf` is not called for other entries.
 */
export function servedEntry(
  document: Uint8Array,
  outcomeOf: (prompt: AgentEntry) => PromptOutcome | undefined,
): Uint8Array {
  const bytes = Buffer.from(document.buffer, document.byteOffset, document.byteLength);
  if (!bytes.subarray(0, PROMPT_MARK_END).includes(PROMPT_MARK)) return document;
  const entry = parse<AgentEntry>(document);
  if (entry.outcome !== undefined) return document;
  const outcome = outcomeOf(entry);
  if (outcome === undefined) return document;
  return Buffer.concat([bytes.subarray(0, -1), Buffer.from(`,"outcome":"${outcome}"}`)]);
}

function parse<T>(json: Uint8Array): T {
  return JSON.parse(Buffer.from(json.buffer, json.byteOffset, json.byteLength).toString('utf8')) as T;
}
