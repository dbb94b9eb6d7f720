/** The output of a prompt as its run keeps it: what was said and done, in order. */
import type { OutputPart } from '#src/runs/run-output.ts';
import { callsOf, type Entry, type ToolResultPart, textOf } from './entry.ts';

export type Warning = Extract<OutputPart, { type: 'warning' }>;
export type AssetPart = Extract<OutputPart, { type: 'asset' }>;

/** `isAnswered`: the last thing the model said is its answer. */
export function turnParts(
  entries: readonly Entry[],
  isAnswered: boolean,
  warnings: readonly Warning[],
  assets: readonly AssetPart[],
): OutputPart[] {
  const last = entries.findLastIndex(({ role }) => role === 'assistant');
  const parts = entries.flatMap((entry, i): OutputPart[] => {
    if (entry.role !== 'assistant') return [];
    const text = textOf(entry);
    const isFinal = isAnswered && i === last;
    return [
      ...(text === '' || isFinal ? [] : [{ type: 'assistant-message' as const, text }]),
      ...callsOf(entry).map(({ callId, name, input }): OutputPart => {
        const { output = '', status = 'cancelled' } = resultOf(entries, i, callId) ?? {};
        return { type: 'tool-call', name, input, output, status };
      }),
      ...(isFinal ? [{ type: 'final-answer' as const, markdown: text }] : []),
    ];
  });
  return [...parts, ...warnings, ...assets];
}

/** The result of a call of the answer at `from`. Some servers use the same call ids in every step. */
function resultOf(entries: readonly Entry[], from: number, callId: string): ToolResultPart | undefined {
  for (const { role, content } of entries.slice(from + 1)) {
    if (role === 'assistant') return undefined;
    const found = content.find((part) => part.type === 'tool-result' && part.callId === callId);
    if (found?.type === 'tool-result') return found;
  }
  return undefined;
}
