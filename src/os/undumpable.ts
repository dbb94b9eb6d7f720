/** Protects the memory of this process, which holds keys, from other processes of the same user. */

const PR_GET_DUMPABLE = 3;
const PR_SET_DUMPABLE = 4;

/**
 * Makes this process undumpable (prctl(2), PR_SET_DUMPABLE), so that only root can trace it, read its memory, environment
 * and descriptors under /proc, or make it leave a core file. Children that run another program are not affected. Returns
 * `undefined` on success, else the reason why this machine cannot do it.
 */
export async function becomeUndumpable(): Promise<string | undefined> {
  if (process.platform !== 'linux') return `it is not supported on ${process.platform}`;
  try {
    const { default: koffi } = await import('koffi');
    const word = 'unsigned long';
    const prctl = koffi.load(null).func(`int prctl(int, ${word}, ${word}, ${word}, ${word})`);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) === 0 ? undefined : 'the system refused it';
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
