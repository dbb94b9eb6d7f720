/** Groups of this machine. Node.js has no function that finds them by their names. */

/** Resolves with the number of a group; undefined when there is no such group (getgrnam(3)). */
export async function groupIdOf(name: string): Promise<number | undefined> {
  const { default: koffi } = await import('koffi');
  const group = koffi.struct({ name: 'str', password: 'str', id: 'uint32_t', members: 'void *' });
  const find = koffi.load(null).func('getgrnam', koffi.pointer(group), ['str']);
  const found: unknown = find(name);
  return found === null ? undefined : (koffi.decode(found, group) as { readonly id: number }).id;
}
