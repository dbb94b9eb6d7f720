/** Attributes of this process that Node.js cannot set (prctl(2)). */

const PR_SET_PDEATHSIG = 1;
const PR_GET_DUMPABLE = 3;
const PR_SET_DUMPABLE = 4;
const SIGKILL = 9;

type Prctl = (option: number, a: number, b: number, c: number, d: number) => number;

/**
 * Has the system kill this process when its parent ends, even if this process is stopped or its
 * event loop hangs. The call has no effect if the parent has already ended. Returns `undefined` on
 * success, otherwise the reason why this machine cannot do it.
 */
export function dieWithParent(): Promise<string | undefined> {
  return attempt((prctl) => prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) === 0);
}

/**
 * Makes this process undumpable, because its memory holds keys and other processes may have the
 * same user. Then only root can trace it, read its memory, environment and descriptors under /proc,
 * or make it leave a core file. Children that run another program are not affected. Returns
 * `undefined` on success, otherwise the reason why this machine cannot do it.
 */
export function becomeUndumpable(): Promise<string | undefined> {
  return attempt((prctl) => {
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) === 0;
  });
}

async function attempt(setting: (prctl: Prctl) => boolean): Promise<string | undefined> {
  if (process.platform !== 'linux') return `it is not supported on ${process.platform}`;
  try {
    const { default: koffi } = await import('koffi');
    const word = 'unsigned long';
    const prctl = koffi.load(null).func(`int prctl(int, ${word}, ${word}, ${word}, ${word})`);
    return setting(prctl) ? undefined : 'the system refused it';
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
