/**
 * Returns a test of whether metadata have a pair, written `key=value`. Without a pair, all metadata
 * pass.
 */
export function metadataFilter(
  pair: string | undefined,
): (metadata: Readonly<Record<string, string>> | undefined) => boolean {
  if (pair === undefined) return () => true;
  const end = pair.indexOf('=');
  const [key, value] = [pair.slice(0, end), pair.slice(end + 1)];
  return (metadata) => metadata !== undefined && Object.hasOwn(metadata, key) && metadata[key] === value;
}

/** Returns metadata as a member of a record; none when there are no pairs. */
export function shownMetadata(metadata: Readonly<Record<string, string>> | null | undefined): {
  readonly metadata?: Readonly<Record<string, string>>;
} {
  return metadata == null || Object.keys(metadata).length === 0 ? {} : { metadata };
}
