/** The output of a prompt in its run: texts and calls, in order. */

import type { AgentEntry } from '#src/contract/wire/agent.ts';
import type { OutputPart } from '#src/contract/wire/run.ts';
import { callsOf, entryText, ResultsOfAnswer } from './entry.ts';

export type Warning = Extract<OutputPart, { type: 'warning' }>;
export type AssetPart = Extract<OutputPart, { type: 'asset' }>;

/** `isAnswered`: the last text of the model is its answer. */
export function turnParts(
  entries: readonly AgentEntry[],
  isAnswered: boolean,
  warnings: readonly Warning[],
  assets: readonly AssetPart[],
): OutputPart[] {
  const last = entries.findLastIndex(({ role }) => role === 'assistant');
  const parts = entries.flatMap((entry, i): OutputPart[] => {
    if (entry.role !== 'assistant') return [];
    const text = entryText(entry);
    const isFinal = isAnswered && i === last;
    const results = new ResultsOfAnswer(entries, i);
    return [
      ...(text === '' || isFinal ? [] : [{ type: 'assistant-message' as const, text }]),
      ...callsOf(entry).map(({ callId, name, input }): OutputPart => {
        const { output = '', status = 'cancelled' } = results.take(callId) ?? {};
        return { type: 'tool-call', name, input, output, status };
      }),
      ...(isFinal ? [{ type: 'final-answer' as const, markdown: text }] : []),
    ];
  });
  return [...parts, ...warnings, ...assets];
}
