// A reporter for the Node.js test runner: prints the tests that failed, one per line, as `file: name of the test`.
export default async function* failedTests(events) {
  for await (const { type, data } of events) {
    if (type === 'test:fail' && data.file !== undefined) yield `${data.file}: ${data.name}\n`;
  }
}
