// A reporter for the Node.js test runner: prints the tests that failed, one per line, as `file: name of the test`. Lines that
// begin with a blank follow, with the first lines of the error.
const MAX_LINES = 12;
const MAX_CHARS = 300;

export default async function* failedTests(events) {
  for await (const { type, data } of events) {
    if (type !== 'test:fail' || data.file === undefined) continue;
    const error = data.details?.error;
    const text = String((error?.cause ?? error)?.message ?? error ?? '');
    const lines = text.split('\n', MAX_LINES).map((line) => `    ${line.slice(0, MAX_CHARS)}\n`);
    yield [`${data.file}: ${data.name}\n`, ...lines].join('');
  }
}
