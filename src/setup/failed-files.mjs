// A reporter for the Node.js test runner: prints the files in which a test failed, one per line.
export default async function* failedFiles(events) {
  const files = new Set();
  for await (const { type, data } of events) {
    if (type === 'test:fail' && data.file !== undefined) files.add(data.file);
  }
  yield [...files].join('\n');
}
