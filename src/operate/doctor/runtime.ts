import { requireUws, uwsCopyInUse, whyUnloadable } from '#src/base/install/native-binaries.ts';
import { type Finding, fine, problem } from './finding.ts';

const OLDEST = [20, 12] as const;
const STORE = 'lmdb';

/** Checks the version of Node.js. */
export function checkNode(version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const isRecent = major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
  if (isRecent) return fine('Node.js', version);
  return problem('Node.js', version, `Install Node.js ${OLDEST.join('.')} or later.`);
}

/**
 * Checks that the native binaries load on this machine: the store's, and uWebSockets.js, of which the setting `uwebsockets` may name
 * another copy.
 */
export async function checkBinaries(uwebsockets: string | undefined): Promise<Finding[]> {
  const copy = await uwsCopyInUse(uwebsockets);
  return [
    await checkBinary('uWebSockets.js', () => requireUws(copy), `${copy.path} loads (${copy.origin})`),
    await checkBinary(STORE, () => import(STORE), 'its native binary loads'),
  ];
}

async function checkBinary(name: string, load: () => unknown, detail: string): Promise<Finding> {
  try {
    await load();
    return fine(name, detail);
  } catch (error) {
    return problem(
      name,
      await whyUnloadable(name, error),
      'Install Troupe again with the Node.js that runs the server (in a checkout: npm run setup).',
    );
  }
}
