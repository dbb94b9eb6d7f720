import { importSetUp } from '#src/core/set-up-module.ts';
import { type Finding, messageOf, ok, problem } from './finding.ts';

const OLDEST = [20, 12] as const;
const BINARIES = ['uWebSockets.js', 'lmdb'];

/** The function of set-up that explains why a binary does not load. */
interface SetUp {
  unloadable(name: string, text: string): string;
}

/** Checks the version of Node.js. */
export function checkNode(version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const isRecent = major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
  if (isRecent) return ok('Node.js', version);
  return problem('Node.js', version, `Install Node.js ${OLDEST.join('.')} or later.`);
}

/** Checks that the packages with native binaries can be loaded on this machine. */
export async function checkBinaries(): Promise<Finding[]> {
  return Promise.all(
    BINARIES.map(async (name) => {
      try {
        await import(name);
        return ok(name, 'its native binary loads');
      } catch (error) {
        const { unloadable } = await importSetUp<SetUp>('node-packages');
        return problem(
          name,
          unloadable(name, messageOf(error)),
          'Install Troupe again with the Node.js that runs the server (in a checkout: npm run setup).',
        );
      }
    }),
  );
}
