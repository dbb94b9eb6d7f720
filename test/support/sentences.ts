/** Splits texts for people into sentences, for the tests that limit their length. */

export const MAX_SENTENCE_WORDS = 30;

/** Returns the sentences of a text of one paragraph that have more than 30 words. A piece of code counts as one word. */
export function longSentencesOf(text: string): string[] {
  return sentencesOf(text).filter((sentence) => sentence.split(' ').length > MAX_SENTENCE_WORDS);
}

/** Returns the sentences of a paragraph, without its marks for emphasis, links and code. */
export function sentencesOf(text: string): string[] {
  return text
    .replace(/`[^`]*`/g, 'code')
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/^(?:[-*]|\d+\.) /, '')
    .replace(/\*\*/g, '')
    .split(/(?<=[.!?]["')]*)\s+/)
    .map((sentence) => sentence.replace(/\s+/g, ' ').trim())
    .filter((sentence) => sentence !== '');
}
