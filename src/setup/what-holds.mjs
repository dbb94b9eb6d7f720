// Imported by each test file's process before it begins: says what holds the process shortly before the runner's limit for a
// file ends it, which the runner itself does not.
import { readdirSync, readFileSync } from 'node:fs';

const BEFORE_LIMIT_MS = 10_000;
const limitMs = Number(process.env.TROUPE_TEST_FILE_LIMIT_MS);

// A program that a test starts with the options of its own process inherits this file, but is not the runner's child.
if (process.env.NODE_TEST_CONTEXT === 'child-v8' && limitMs > BEFORE_LIMIT_MS)
  setTimeout(report, limitMs - BEFORE_LIMIT_MS).unref();

function report() {
  const lines = [
    `${process.argv[1]} is still running and holds: ${counted(process.getActiveResourcesInfo())}`,
  ];
  for (const pid of children()) lines.push(`  its child ${pid}: ${commandOf(pid)}`);
  process.stderr.write(`${lines.join('\n')}\n`);
}

function counted(names) {
  const counts = new Map();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].map(([name, count]) => `${count} ${name}`).join(', ');
}

function children() {
  return readdirSync('/proc/self/task').flatMap((thread) =>
    readFileSync(`/proc/self/task/${thread}/children`, 'utf8').split(' ').filter(Boolean),
  );
}

function commandOf(pid) {
  try {
    const state = /^State:\s+(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').join(' ').trim();
    return `${words} ${state}`;
  } catch {
    return 'has ended';
  }
}
