/** Texts that hold nothing else in memory, for those that are kept of what somebody has sent. */

/**
 * Returns the text in a piece of its own. V8 makes of a slice a view of the whole text, which stays in memory as long as the
 * slice does, and of a text that was joined from pieces a tree of them.
 */
export function compactText(text: string): string {
  return JSON.parse(JSON.stringify(text));
}

/** Returns what `text.slice(start, end)` returns, in a piece of its own. */
export function cutText(text: string, start: number, end = text.length): string {
  return start === 0 && end >= text.length ? text : compactText(text.slice(start, end));
}

/** Returns the text, or its beginning and an ellipsis when it has more than so many characters. */
export function shortenText(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : `${cutText(text, 0, maxChars)}…`;
}
