/**
 * Returns a test of whether titles contain `part`, ignoring case. Without a part, all titles pass.
 */
export function titleFilter(part: string | undefined): (title: string | null) => boolean {
  if (part === undefined) return () => true;
  const wanted = folded(part);
  return (title) => title !== null && folded(title).includes(wanted);
}

function folded(text: string): string {
  return text.normalize('NFKC').toLowerCase();
}
