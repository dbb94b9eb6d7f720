// Prepares an installation. A checkout needs npm packages, a Python environment and a build; an installed package is built
// already, and needs the Python environment, the prepared addon and compiled code for its Node.js. When nothing is missing, set-up only compares
// stamps and prints nothing. `npm run setup` runs this file, `troupe setup` and `troupe serve` import it.
import { existsSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { endingWithUs } from './children.mjs';
import { began, reporting, SetupError, say } from './console.mjs';
import { holdingLock } from './lock.mjs';
import * as pythonEnvironment from './python-environment.mjs';
import * as uwebsockets from './uwebsockets.mjs';

/** The directory of this installation. */
export const ROOT = realpathSync(fileURLToPath(new URL('../../', import.meta.url)));

const OLDEST_NODE = [20, 12];

/**
 * Performs the steps that are missing, and prints each with its time. `further` are steps that do not depend on
 * others. Idempotent. Rejects with a `SetupError`.
 */
export async function setUp(root = ROOT, further = []) {
  requireNode(process.versions.node);
  await performSteps(root, [
    await stepsOfPrograms(root),
    [pythonEnvironment],
    ...further.map((step) => [step]),
  ]);
}

/** Performs the steps that are missing without the Python environment: the programs of `root` can then run. */
export async function setUpPrograms(root = ROOT) {
  await performSteps(root, [await stepsOfPrograms(root)]);
}

/** Performs sequences of steps side by side. */
async function performSteps(root, sequences) {
  if (sequences.flat().every((step) => step.pending(root) === undefined)) return;
  await endingWithUs(() =>
    holdingLock(root, async (lock) => {
      await Promise.all(
        sequences.map(async (steps) => {
          for (const step of steps) await performIfPending(step, root, lock);
        }),
      );
    }),
  );
}

/**
 * Returns the steps that make the programs runnable. Each of them needs the previous one. Packages
 * have no build.
 */
async function stepsOfPrograms(root) {
  const isCheckout = existsSync(join(root, 'tsconfig.json'));
  return isCheckout
    ? [await import('./node-packages.mjs'), uwebsockets, await import('./build.mjs')]
    : [uwebsockets, await import('./code-cache.mjs')];
}

async function performIfPending(step, root, lock) {
  if (step.pending(root) === undefined) return;
  const done = began(step.title);
  await step.perform(root, lock);
  done();
}

/** Throws a `SetupError` when `version` is older than the code needs. */
export function requireNode(version) {
  const [major, minor] = version.split('.').map(Number);
  if (major > OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor >= OLDEST_NODE[1])) return;
  throw new SetupError(`Node.js ${OLDEST_NODE.join('.')} or later is needed; this is ${version}.`);
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  await reporting(setUp);
  say('everything is set up');
}
