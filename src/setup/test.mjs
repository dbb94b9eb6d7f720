// `npm test`, `npm run quick` and `npm run whole`: perform the set-up, then run the tests of their tier
// (`test/runner/`). With arguments they run only those test files or folders, such as `test/people/auth`,
// `test/base/config.test.ts` or `test/confined/python/test_scans.py`. With `TROUPE_TEST_WORKERS=3` and no arguments
// they run all tests that can use a server of three workers. Arguments that begin with a hyphen are passed to the
// test runner of Node.js.
import * as clientGenerators from './client-generators.mjs';
import { reporting, SetupError, say } from './console.mjs';
import * as pythonClient from './python-client.mjs';
import { ROOT, setUp } from './setup.mjs';

/** Steps of the set-up that only some tests need, and those tests. */
const STEPS_OF_TESTS = [
  {
    step: clientGenerators,
    tests: /^test\/(openapi\/(generated|stream)|mcp\/python)-clients\.test\.ts$/,
  },
  { step: pythonClient, tests: /^test\/(contract\/client-python\/|mcp\/python-agents\.)/ },
];

await reporting(async () => {
  await setUp();
  const runner = await import('../../dist/test/runner/main.js');
  const selection = selected(runner);
  const files = selection.stages.flatMap((stage) => stage.files);
  const needed = STEPS_OF_TESTS.filter(({ tests }) => files.some(({ path }) => tests.test(path)));
  await setUp(
    ROOT,
    needed.map(({ step }) => ifPossible(step)),
  );
  process.exitCode = (await runner.run(ROOT, selection, say)) ? 0 : 1;
});

/** Returns the files and options that the arguments select. Throws a `SetupError` when they select nothing. */
function selected(runner) {
  try {
    return runner.select(ROOT, process.argv.slice(2));
  } catch (error) {
    throw new SetupError(error.message);
  }
}

/** Wraps the step, so that it reports a failure and continues: only the tests that need it fail then. */
function ifPossible(step) {
  return {
    ...step,
    async perform(root, keepOpen) {
      try {
        await step.perform(root, keepOpen);
      } catch (error) {
        if (!(error instanceof SetupError)) throw error;
        say(error.message);
      }
    },
  };
}
