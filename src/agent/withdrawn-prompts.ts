/**
 * Prompts that did not complete, as later requests contain them. A model may carry out such a prompt although it was cancelled,
 * even when it reads it as a part of the next one. A provider that has refused the prompt's text refuses every request that
 * contains it. So a note of the server replaces the prompt and everything that followed it. The note has no words of a person, a
 * model or a program; it names the tools that ran and the cells they touched, since these things did happen.
 *
 * A prompt that stopped at a limit was fine, and people resume it with a short “continue”. It is kept whole, with a note after it.
 */

import type { AgentEntry, PromptOutcome } from '#src/contract/wire/agent.ts';
import type { StoredEntry } from './entry.ts';
import { asData } from './tools/as-data.ts';

const MAX_NAMED_CELLS = 100;

const ENDS: Readonly<Record<Exclude<PromptOutcome, 'limit'>, string>> = {
  cancelled: 'was cancelled by a person',
  failed: 'failed',
  stale: 'was cut off when the server stopped',
};
const LIMIT_NOTE =
  '[Note of the server: the request before this stopped at a limit, and is over. Go on with it only if the next message asks ' +
  'for that.]';

/**
 * Returns the entries for the model: earlier prompts according to their outcomes, and the last prompt, which is being answered,
 * unchanged.
 */
export function withoutWithdrawn(entries: readonly StoredEntry[]): StoredEntry[] {
  const last = entries.findLastIndex(({ entry }) => entry.role === 'user');
  const shown: StoredEntry[] = [];
  let exchange: StoredEntry[] = [];
  for (const kept of entries.slice(0, Math.max(last, 0))) {
    if (kept.entry.role === 'user') {
      shown.push(...shownExchange(exchange));
      exchange = [];
    }
    exchange.push(kept);
  }
  return [...shown, ...shownExchange(exchange), ...entries.slice(Math.max(last, 0))];
}

function shownExchange(exchange: readonly StoredEntry[]): readonly StoredEntry[] {
  const entry = exchange[0]?.entry;
  if (entry?.outcome === undefined) return exchange;
  const { outcome } = entry;
  // Without an answer between two prompts, they would be merged.
  const isStarted = exchange.some((kept) => kept.entry.role === 'assistant');
  if (outcome === 'limit' && isStarted) return [...exchange, noteAt(entry, LIMIT_NOTE)];
  const how = outcome === 'limit' ? 'failed' : outcome;
  return [noteAt(entry, noteOf(how, exchange))];
}

function noteAt(prompt: AgentEntry, text: string): StoredEntry {
  const entry: AgentEntry = { ...prompt, role: 'user', content: [{ type: 'text', text }] };
  return { entry, model: null, provider: [] };
}

function noteOf(outcome: Exclude<PromptOutcome, 'limit'>, exchange: readonly StoredEntry[]): string {
  const results = exchange.flatMap(({ entry }) =>
    entry.content.filter((part) => part.type === 'tool-result'),
  );
  const calls = exchange.flatMap(({ entry }) => entry.content.filter((part) => part.type === 'tool-call'));
  const cells = [...new Set(results.flatMap(({ touchedCells = [] }) => touchedCells))];
  const isCutOff =
    results.length < calls.length ||
    results.some(({ status, touchedCells }) => status === 'cancelled' && touchedCells === undefined);
  const lines = [
    `A request that stood here ${ENDS[outcome]}. It is withdrawn and its text is left out: do not carry it out, and do not go on ` +
      'with it. If the next message refers to it, ask what is meant.',
  ];
  if (calls.length > 0) {
    lines.push(
      `Before it ended, ${calls.length === 1 ? 'a tool was' : `${calls.length} tools were`} called for it.`,
    );
    if (isCutOff) lines.push('Not all of them ended in order: their effects are not known.');
    lines.push('Look at the present state before you rely on anything.');
  }
  const note = `[Note of the server: ${lines.join(' ')}]`;
  if (cells.length === 0) return note;
  const named = cells.slice(0, MAX_NAMED_CELLS).join('\n');
  const more = cells.length > MAX_NAMED_CELLS ? `\n${cells.length - MAX_NAMED_CELLS} more` : '';
  return `${note}\nThe cells that were changed or run for it:\n${asData(named + more)}`;
}
