/**
 * Copies texts that are kept for long. A short text that was cut from a long text would otherwise keep the
 * long text in memory.
 */
import { cutText } from './cut-text.ts';

/**
 * Returns a copy of the text that is one piece and shares no memory with other texts. To V8 a slice is a view of the
 * whole text, which stays in memory as long as the slice does, and a text that was joined from pieces is a tree of
 * them.
 */
export function compactText(text: string): string {
  return JSON.parse(JSON.stringify(text));
}

/** Returns the value of `cutText(text, start, end)`, as a text that does not keep the whole in memory. */
export function compactPart(text: string, start: number, end = text.length): string {
  return start === 0 && end >= text.length ? text : compactText(cutText(text, start, end));
}

/** Returns the text, or its beginning and an ellipsis when it has more than `maxChars` characters. */
export function shortenText(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : `${compactPart(text, 0, maxChars)}…`;
}
