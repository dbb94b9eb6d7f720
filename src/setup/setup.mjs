// Brings a checkout into the state in which it runs: npm packages, Python environment, build. When nothing is left to
// do it only compares stamps and says nothing. Run as a program it does just that.
import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import * as build from './build.mjs';
import { endingWithUs } from './children.mjs';
import { holdingLock } from './lock.mjs';
import * as nodePackages from './node-packages.mjs';
import * as pythonEnvironment from './python-environment.mjs';
import { began, reporting, SetupError, say } from './say.mjs';

export const ROOT = realpathSync(fileURLToPath(new URL('../../', import.meta.url)));

const OLDEST_NODE = [20, 12];

/** Does what is missing, each step with its name and time. Idempotent; rejects with a `SetupError`. */
export async function setUp(root = ROOT) {
  requireNode(process.versions.node);
  const steps = [nodePackages, pythonEnvironment, build];
  if (steps.every((step) => step.pending(root) === undefined)) return;
  await endingWithUs(() =>
    holdingLock(root, async (lock) => {
      // Neither needs the other; the build needs the packages.
      const packagesAndBuild = performIfPending(nodePackages, root, lock).then(() =>
        performIfPending(build, root, lock),
      );
      await Promise.all([packagesAndBuild, performIfPending(pythonEnvironment, root, lock)]);
    }),
  );
}

async function performIfPending(step, root, lock) {
  if (step.pending(root) === undefined) return;
  const done = began(step.title);
  await step.perform(root, lock);
  done();
}

/** Throws when `version` is older than what the code needs. */
export function requireNode(version) {
  const [major, minor] = version.split('.').map(Number);
  if (major > OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor >= OLDEST_NODE[1])) return;
  throw new SetupError(`Node.js ${OLDEST_NODE.join('.')} or later is needed; this is ${version}.`);
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  await reporting(setUp);
  say('everything is set up');
}
