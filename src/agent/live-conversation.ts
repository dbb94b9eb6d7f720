/**
 * An agent conversation in memory: its entries, the answer that is being written, its event stream. It is created at the first use
 * of a session, and leaves memory when it has no followers and no work. Text passes through this class, never through the chart.
 */

import { continueAfter, type EntryId, newId, type SessionId, type WorkspaceId } from '#src/base/ids.ts';
import { timestamp } from '#src/base/time/clock.ts';
import type { AgentEntry, EntryPart, PromptOutcome } from '#src/contract/wire/agent.ts';
import type { Envelope } from '#src/contract/wire/events.ts';
import type { ActorId } from '#src/runtime/actors/address.ts';
import type { SessionStream } from '#src/runtime/events/session-stream.ts';
import { piecesOfText } from '#src/runtime/sessions/event-size.ts';
import { type Asset, putAsset } from '#storage/records/assets.ts';
import { entryRecords } from '#storage/records/conversations.ts';
import type { Store } from '#storage/store.ts';
import { DeltaBuffer, type DeltaKind } from './delta-buffer.ts';
import {
  callsOf,
  encodeEntry,
  openCalls,
  type ProviderData,
  type StoredEntry,
  storedEntryOf,
} from './entry.ts';
import { streamedCall, streamedEntry, streamedToolResult } from './streamed-entries.ts';

/** An answer that is being written: streamed to subscribers, saved when it is complete. */
export interface Draft {
  readonly entryId: string;
  readonly runId: string;
  text: string;
  reasoning: string;
}

export interface NewEntry {
  /** The id of the draft that the entry completes; a new id when absent. */
  readonly id?: string;
  readonly role: AgentEntry['role'];
  readonly runId: string;
  readonly content: readonly EntryPart[];
  readonly model?: string;
  readonly provider?: readonly ProviderData[];
  /** Images that its parts name. */
  readonly assets?: ReadonlyMap<string, Asset>;
}

export interface LiveConversationOptions {
  readonly store: Store;
  readonly session: ActorId;
  readonly stream: SessionStream;
  /** Called when its stream has no users any more. */
  readonly onUnused: () => void;
  /** The entries, when the caller has them; otherwise the committed entries are read. */
  readonly entries?: readonly StoredEntry[];
  readonly outcomeOf: OutcomeOf;
}

/**
 * Returns the outcome of a prompt whose entry has none, by its run; undefined while the run lasts and when it completed. `answer`
 * is the last entry before the next prompt. `answer` decides when the run no longer exists.
 */
export type OutcomeOf = (
  workspaceId: WorkspaceId,
  prompt: AgentEntry,
  answer?: AgentEntry,
) => PromptOutcome | undefined;

export class LiveConversation {
  readonly workspaceId: WorkspaceId;
  readonly sessionId: SessionId;
  readonly stream: SessionStream;
  readonly #store: Store;
  readonly #entries: StoredEntry[];
  readonly #deltas = new DeltaBuffer((kind, text) => this.#publishDelta(kind, text));
  readonly #stopListening: () => void;
  #draft: Draft | undefined;

  constructor(options: LiveConversationOptions) {
    const { store, session, stream, onUnused, entries, outcomeOf } = options;
    const { workspaceId } = session;
    const sessionId = session.id as SessionId;
    this.#stopListening = stream.onUnused(onUnused);
    this.#store = store;
    this.workspaceId = workspaceId;
    this.sessionId = sessionId;
    this.stream = stream;
    this.#entries = withOutcomes(entries ?? savedEntries(store, workspaceId, sessionId), (prompt, answer) =>
      outcomeOf(workspaceId, prompt, answer),
    );
    // Entries and runs are in the order of their ids, also after the clock was set back between two processes.
    const newest = this.#entries.at(-1)?.entry.id;
    if (newest !== undefined) continueAfter(newest);
  }

  [Symbol.dispose](): void {
    this.#stopListening();
  }

  get entries(): readonly StoredEntry[] {
    return this.#entries;
  }
  get draft(): Draft | undefined {
    return this.#draft;
  }

  /** Begins a new answer and discards an incomplete one. Returns the id of the new answer's entry. */
  beginDraft(runId: string): string {
    this.#deltas.drop();
    const entryId = newId<EntryId>('entry');
    this.#draft = { entryId, runId, text: '', reasoning: '' };
    return entryId;
  }

  addDelta(kind: DeltaKind, text: string): void {
    if (this.#draft === undefined) return;
    this.#deltas.add(kind, text);
    if (kind === 'text-delta') this.#draft.text += text;
    else this.#draft.reasoning += text;
  }

  dropDraft(): void {
    this.#deltas.drop();
    this.#draft = undefined;
  }

  /** Saves an entry in this turn's commit, and publishes the entry once the commit is on disk. */
  append({ id, role, runId, content, model, provider = [], assets }: NewEntry): AgentEntry {
    this.#deltas.flush();
    const entry: AgentEntry = {
      id: id ?? newId<EntryId>('entry'),
      role,
      content,
      runId,
      createdAt: timestamp(),
    };
    const kept: StoredEntry = { entry, model: model ?? null, provider };
    this.#store.write((tx) => {
      tx.putEncoded(encodeEntry(kept), this.workspaceId, this.sessionId, entry.id);
      for (const [assetId, asset] of assets ?? []) {
        putAsset(tx, asset, this.sessionId, this.workspaceId, runId, assetId);
      }
    });
    this.#entries.push(kept);
    if (this.#draft?.entryId === entry.id) this.#draft = undefined;
    this.#publishEntry(entry, runId, this.#store.durable());
    return entry;
  }

  /**
   * Notes why the prompt of a run has no answer. Its entry is saved with the reason in this turn's commit, and published again once
   * that is on disk.
   */
  settlePrompt(runId: string, outcome: PromptOutcome): void {
    const isPrompt = ({ entry }: StoredEntry) => entry.role === 'user' && entry.runId === runId;
    const index = this.#entries.findLastIndex(isPrompt);
    const known = this.#entries[index];
    if (known === undefined) return; // damaged, and left out when the conversation was read
    const entry: AgentEntry = { ...known.entry, outcome };
    const kept: StoredEntry = { ...known, entry };
    this.#entries[index] = kept;
    this.#store.write((tx) => tx.putEncoded(encodeEntry(kept), this.workspaceId, this.sessionId, entry.id));
    this.#publishEntry(entry, runId, this.#store.durable());
  }

  /** Publishes a run's status once it is committed, after the text that came before it. */
  publishRunStatus(event: Envelope<'run-status'>, committed: Promise<void> | undefined): void {
    this.#deltas.flush();
    this.stream.publish(event, committed);
  }

  /** Returns the history and the answer so far as events, for a new subscriber. */
  replay(): Envelope[] {
    const { sessionId } = this;
    this.#deltas.flush();
    const history = this.#entries.map(({ entry }): Envelope => {
      const run = entry.runId === null ? {} : { runId: entry.runId };
      // Frames are made one by one as the client takes them, and long entries are measured only then.
      return {
        type: 'agent-entry',
        sessionId,
        ...run,
        get data() {
          return streamedEntry(entry);
        },
      };
    });
    return [...history, ...this.#present()];
  }

  *#present(): Generator<Envelope> {
    const { sessionId } = this;
    const lastRun = this.#entries.at(-1)?.entry.runId ?? null;
    if (lastRun !== null) {
      for (const call of openCalls(this.#entries)) {
        yield { type: 'tool-call', sessionId, runId: lastRun, data: streamedCall(call) };
      }
    }
    if (this.#draft === undefined) return;
    yield* this.#deltasOf('reasoning-delta', this.#draft, this.#draft.reasoning);
    yield* this.#deltasOf('text-delta', this.#draft, this.#draft.text);
  }

  #publishDelta(type: DeltaKind, text: string): void {
    if (this.#draft === undefined) return;
    for (const event of this.#deltasOf(type, this.#draft, text)) this.stream.publish(event);
  }

  /** Yields one event, or several for a long text. */
  *#deltasOf(type: DeltaKind, { entryId, runId }: Draft, text: string): Generator<Envelope> {
    if (text === '') return;
    for (const piece of piecesOfText(text))
      yield { type, sessionId: this.sessionId, runId, data: { entryId, text: piece } };
  }

  #publishEntry(entry: AgentEntry, runId: string, committed: Promise<void> | undefined): void {
    const { sessionId } = this;
    for (const part of entry.content) {
      if (part.type !== 'tool-result') continue;
      this.stream.publish(
        { type: 'tool-result', sessionId, runId, data: streamedToolResult(part) },
        committed,
      );
    }
    this.stream.publish({ type: 'agent-entry', sessionId, runId, data: streamedEntry(entry) }, committed);
    for (const call of callsOf(entry)) {
      this.stream.publish({ type: 'tool-call', sessionId, runId, data: streamedCall(call) }, committed);
    }
  }
}

/** Returns the entries, with outcomes added to prompts that a crashed server left without. */
function withOutcomes(
  entries: readonly StoredEntry[],
  outcomeOf: (prompt: AgentEntry, answer: AgentEntry | undefined) => PromptOutcome | undefined,
): StoredEntry[] {
  const all = [...entries];
  let last: AgentEntry | undefined;
  for (let i = all.length - 1; i >= 0; i--) {
    const kept = all[i]!;
    const { entry } = kept;
    if (entry.role !== 'user') {
      last ??= entry;
      continue;
    }
    const outcome = entry.outcome ?? outcomeOf(entry, last);
    if (outcome !== undefined) all[i] = { ...kept, entry: { ...entry, outcome } };
    last = undefined;
  }
  return all;
}

function savedEntries(store: Store, workspaceId: WorkspaceId, sessionId: SessionId): StoredEntry[] {
  const saved = store.list(entryRecords, workspaceId, [sessionId], { limit: Number.POSITIVE_INFINITY });
  return [...saved].map(({ value }) => storedEntryOf(value));
}
