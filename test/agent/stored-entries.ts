/** Entries of a conversation as they are stored. */
import type { StoredEntry } from '#src/agent/entry.ts';
import type { EntryId } from '#src/base/ids.ts';
import type { EntryPart } from '#src/contract/wire/agent.ts';

/** Returns an entry with this content. */
export const entry = (role: 'user' | 'assistant' | 'tool', ...content: EntryPart[]): StoredEntry => ({
  entry: { id: 'ent_1' as EntryId, role, content, runId: null, createdAt: '' },
  model: null,
  provider: [],
});

/** Returns a message of a person. */
export const user = (text: string) => entry('user', { type: 'text', text });

/** Returns a text of the model. */
export const answer = (text: string) => entry('assistant', { type: 'text', text });

/** Returns a call of a tool, for an entry of the model. */
export const callPart = (callId: string): EntryPart => ({
  type: 'tool-call',
  callId,
  name: 'read',
  input: {},
});

/** Returns the result of a call, for an entry of the tools. */
export const resultPart = (callId: string, output: string): EntryPart => ({
  type: 'tool-result',
  callId,
  name: 'read',
  status: 'completed',
  output,
  images: [],
});
