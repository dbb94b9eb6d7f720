/** Takes this process away from other programs of the same user: its memory, environment and descriptors hold keys. */

const PR_GET_DUMPABLE = 3;
const PR_SET_DUMPABLE = 4;

/**
 * From here on only root may trace this process, read its memory, environment and descriptors under /proc, or have it
 * leave a core file (prctl(2), PR_SET_DUMPABLE). Children that run another program are as usual. Resolves with why it is
 * not so where the machine cannot do it, and with undefined when it is done.
 */
export async function becomeUndumpable(): Promise<string | undefined> {
  if (process.platform !== 'linux') return `${process.platform} has no such switch`;
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
