// Imported into the process of each test file. Shortly before the runner's time limit ends that process, this prints
// the handles that keep it running. The runner itself prints only the name of the file.
import { readdirSync, readFileSync } from 'node:fs';

const BEFORE_LIMIT_MS = 10_000;
const limitMs = Number(process.env.TROUPE_TEST_FILE_LIMIT_MS);

if (limitMs > BEFORE_LIMIT_MS) setTimeout(report, limitMs - BEFORE_LIMIT_MS).unref();

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
