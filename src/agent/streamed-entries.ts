/**
 * Entries of conversations as events carry them: long texts, inputs and outputs are cut, so that no frame has more than 1 MiB, the lowest
 * limit that clients are known to have. `GET …/entries` has all of them.
 */

import type { AgentEntry, EntryPart, ToolCallPart, ToolResultPart } from '#src/contract/wire/agent.ts';
import type { EventData } from '#src/contract/wire/events.ts';
import { beginning, bytesOfJson, fits } from '#src/runtime/sessions/event-size.ts';

/** The most bytes of the JSON of an entry that is sent unchanged. */
const MAX_ENTRY_BYTES = 512 * 1024;
/** The most bytes, as JSON, of each text, input and output of a larger entry, and of the input or output of a call. */
const MAX_TEXT_BYTES = 64 * 1024;
/** The bytes of an empty text as JSON. */
const EMPTY_BYTES = 2;
/** The most bytes of the entries in a snapshot. */
const MAX_SNAPSHOT_BYTES = 256 * 1024;

/** Each entry as its events carry it: entries never change, and measuring a long one takes milliseconds. */
const streamed = new WeakMap<AgentEntry, AgentEntry>();

/** Returns an entry as an event carries it. */
export function streamedEntry(entry: AgentEntry): AgentEntry {
  const known = streamed.get(entry);
  if (known !== undefined) return known;
  const made = fits(entry, MAX_ENTRY_BYTES) ? entry : shortEntry(entry);
  streamed.set(entry, made);
  return made;
}

function shortEntry(entry: AgentEntry): AgentEntry {
  let room = MAX_ENTRY_BYTES;
  const content = entry.content.map((part): EntryPart => {
    const short = shortPart(part, Math.max(EMPTY_BYTES, Math.min(room, MAX_TEXT_BYTES)));
    room = Math.max(0, room - bytesOfJson(short));
    return short;
  });
  return { ...entry, content };
}

/** Returns the first entries as a snapshot carries them: the events that follow it have all. */
export function snapshotEntries(entries: readonly AgentEntry[]): AgentEntry[] {
  const first: AgentEntry[] = [];
  let room = MAX_SNAPSHOT_BYTES;
  for (const entry of entries) {
    if (!fits(entry, room)) break;
    room -= bytesOfJson(entry);
    first.push(entry);
  }
  return first;
}

export function streamedCall({ callId, name, input }: ToolCallPart): EventData<'tool-call'> {
  return { callId, name, ...shortInput(input, MAX_TEXT_BYTES) };
}

export function streamedToolResult({ callId, output, status }: ToolResultPart): EventData<'tool-result'> {
  const { text, ...omitted } = shortText(output, MAX_TEXT_BYTES);
  return { callId, output: text, status, ...omitted };
}

function shortPart(part: EntryPart, maxBytes: number): EntryPart {
  switch (part.type) {
    case 'text':
    case 'reasoning':
      return { ...part, ...shortText(part.text, maxBytes) };
    case 'tool-call':
      return { ...part, ...shortInput(part.input, maxBytes) };
    case 'tool-result': {
      const { text, ...omitted } = shortText(part.output, maxBytes);
      return { ...part, output: text, ...omitted };
    }
  }
}

interface ShortText {
  readonly text: string;
  readonly omittedChars?: number;
}

function shortText(text: string, maxBytes: number): ShortText {
  if (fits(text, maxBytes)) return { text };
  const head = beginning(text, maxBytes);
  return { text: head, omittedChars: text.length - head.length };
}

/** Returns an input, or the beginning of its JSON when it is too large. */
function shortInput(input: unknown, maxBytes: number): { input: unknown; omittedChars?: number } {
  if (fits(input, maxBytes)) return { input };
  const { text, ...omitted } = shortText(typeof input === 'string' ? input : JSON.stringify(input), maxBytes);
  return { input: text, ...omitted };
}
