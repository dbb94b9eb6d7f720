/** Ends this process when its parent ends, even if this process is stopped or never returns to its event loop. */

const PR_SET_PDEATHSIG = 1;
const SIGKILL = 9;

/**
 * Has the system kill this process when its parent ends (prctl(2), PR_SET_PDEATHSIG). A parent that has ended before is not
 * noticed. Returns `undefined` on success, else the reason why this machine cannot do it.
 */
export async function dieWithParent(): Promise<string | undefined> {
  if (process.platform !== 'linux') return `it is not supported on ${process.platform}`;
  try {
    const { default: koffi } = await import('koffi');
    const word = 'unsigned long';
    const prctl = koffi.load(null).func(`int prctl(int, ${word}, ${word}, ${word}, ${word})`);
    return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) === 0 ? undefined : 'the system refused it';
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
