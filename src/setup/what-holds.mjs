// Imported into the process of each test file. Shortly before the runner's time limit ends that
// process, this prints the running test, the handles that keep the process running, and its
// descendants. The runner itself prints only the name of the file. The lines also go into the file
// that TROUPE_TEST_HELD names, from which `npm test` prints them at its end.
import { appendFileSync, readdirSync, readFileSync } from 'node:fs';
import { beforeEach } from 'node:test';

const BEFORE_LIMIT_MS = 10_000;
const limitMs = Number(process.env.TROUPE_TEST_FILE_LIMIT_MS);
let present = 'before its first test';

if (limitMs > BEFORE_LIMIT_MS) {
  beforeEach(({ name }) => {
    present = `in or after the test "${name}"`;
  });
  setTimeout(report, limitMs - BEFORE_LIMIT_MS).unref();
}

function report() {
  const lines = [
    `${process.argv[1]} is still running, ${present}, and holds: ${counted(process.getActiveResourcesInfo())}`,
  ];
  describe(process.pid, '  ', lines);
  const text = `${lines.join('\n')}\n`;
  process.stderr.write(text);
  const file = process.env.TROUPE_TEST_HELD;
  if (file) appendFileSync(file, text);
}

function counted(names) {
  const counts = new Map();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].map(([name, count]) => `${count} ${name}`).join(', ');
}

/** Adds a line for each descendant of the process. */
function describe(pid, indent, lines) {
  for (const child of childrenOf(pid)) {
    lines.push(`${indent}its child ${child}: ${commandOf(child)}`);
    describe(child, `${indent}  `, lines);
  }
}

function childrenOf(pid) {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean),
    );
  } catch {
    return []; // the process has ended
  }
}

function commandOf(pid) {
  try {
    const state = /^State:\s+(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').join(' ').trim();
    return `${words.slice(0, 200)} ${state}`;
  } catch {
    return 'has ended';
  }
}
