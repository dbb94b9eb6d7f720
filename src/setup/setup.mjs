// Prepares a checkout: npm packages, Python environment, build. When nothing is missing, it only compares stamps and
// prints nothing. `npm run setup` runs this file.
import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import * as build from './build.mjs';
import { endingWithUs } from './children.mjs';
import { began, reporting, SetupError, say } from './console.mjs';
import { holdingLock } from './lock.mjs';
import * as nodePackages from './node-packages.mjs';
import * as pythonEnvironment from './python-environment.mjs';

/** The directory of this checkout. */
export const ROOT = realpathSync(fileURLToPath(new URL('../../', import.meta.url)));

const OLDEST_NODE = [20, 12];

/**
 * Performs the steps that are missing, and prints each with its time. `further` are steps that depend on no other one.
 * Idempotent. Rejects with a `SetupError`.
 */
export async function setUp(root = ROOT, further = []) {
  requireNode(process.versions.node);
  const steps = [nodePackages, pythonEnvironment, build, ...further];
  if (steps.every((step) => step.pending(root) === undefined)) return;
  await endingWithUs(() =>
    holdingLock(root, async (lock) => {
      // The Python environment is independent of the other two; the build needs the packages.
      const packagesAndBuild = performIfPending(nodePackages, root, lock).then(() =>
        performIfPending(build, root, lock),
      );
      const independent = [pythonEnvironment, ...further].map((step) => performIfPending(step, root, lock));
      await Promise.all([packagesAndBuild, ...independent]);
    }),
  );
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
