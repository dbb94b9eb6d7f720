/** Returns the candidate that `word` was probably meant to be, or `undefined` when none is similar enough. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  let best: string | undefined;
  let least = Math.max(2, Math.floor(word.length / 4)) + 1;
  for (const candidate of candidates) {
    const distance = distanceBetween(word.toLowerCase(), candidate.toLowerCase());
    if (distance < least) [best, least] = [candidate, distance];
  }
  return best;
}

/** Returns the edit distance, or 1 when one word is only a longer form of the other. */
function distanceBetween(word: string, candidate: string): number {
  const [short, long] = word.length < candidate.length ? [word, candidate] : [candidate, word];
  return short.length >= 4 && long.startsWith(short) ? 1 : editDistance(word, candidate);
}

/** Returns how many insertions, deletions and substitutions turn `from` into `to` (Levenshtein distance). */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const substituted = row[j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(substituted, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[to.length]!;
}
