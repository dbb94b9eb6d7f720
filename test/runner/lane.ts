/**
 * One lane: a process that imports the test files that the runner names, one after the other, each as a suite of its own. After each
 * file it puts back the parts of the process that files share, and reports the ones that the file had changed.
 */
import { join } from 'node:path';
import { describe } from 'node:test';
import { pathToFileURL } from 'node:url';
import { newId, timeOfId } from '#src/base/ids.ts';
import { untilReported } from './file-reported.ts';
import { ends, LANE } from './lane-state.ts';
import type { Order, Report } from './messages.ts';

if (LANE === undefined) throw new Error('The runner starts lanes.');
const lane = LANE;
/** Where Node.js keeps the agent that `fetch` uses. */
const DISPATCHER = Symbol.for('undici.globalDispatcher.1');
const globals = globalThis as { [DISPATCHER]?: unknown };
const root = process.cwd();
/** The clocks and timers of the process. A method that a test has mocked twice stays mocked when the test has ended. */
const CLOCKS = (
  [
    [globalThis, 'Date'],
    [Date, 'now'],
    [performance, 'now'],
    [globalThis, 'setTimeout'],
    [globalThis, 'setInterval'],
    [globalThis, 'setImmediate'],
  ] as const
).map(([owner, name]) => ({ owner: owner as Record<string, unknown>, name, real: Reflect.get(owner, name) }));

// A lane does not outlive its runner.
process.on('disconnect', () => process.exit());
let answer: (order: Order) => void = () => {};
process.on('message', (order) => answer(order as Order));
const stray: string[] = [];
process.on('uncaughtExceptionMonitor', (error) => stray.push(error.stack ?? String(error)));
process.on('SIGUSR2', () => {
  process.stderr.write(`The process holds: ${counted(process.getActiveResourcesInfo())}\n`);
});

await fetch('data:,'); // sets the agent
for (;;) {
  const order = await next();
  if (order.op === 'end') break;
  await run(order.file, order.ownHost);
}
for (const end of ends) await end();
process.exit();

/** Resolves with the next order. */
function next(): Promise<Order> {
  return new Promise((resolve) => {
    answer = resolve;
    send({ op: 'next' });
  });
}

function send(report: Report): void {
  process.send?.(report);
}

/** Runs one test file. Resolves when each of its tests was sent to the runner. */
async function run(file: string, ownHost: boolean): Promise<void> {
  const environment = { ...process.env };
  const dispatcher = globals[DISPATCHER];
  const umask = process.umask();
  const compiled = join(root, 'dist', file.replace(/\.ts$/, '.js'));
  lane.file = file;
  lane.ownHost = ownHost;
  process.argv[1] = compiled;
  process.exitCode = undefined;
  stray.length = 0;
  const reported = untilReported(file);
  await describe(file, async () => {
    await import(pathToFileURL(compiled).href);
  });
  await reported;
  // Node.js adds an error that no test waited for to the running test. Without one it only sets the exit code.
  if (process.exitCode !== undefined && stray.length > 0) {
    send({
      op: 'test',
      name: 'no error comes outside of the tests',
      outcome: 'failed',
      ms: 0,
      text: stray.join('\n'),
      ofFile: true,
    });
  }
  for (const name of new Set([...Object.keys(environment), ...Object.keys(process.env)])) {
    if (process.env[name] === environment[name]) continue;
    send({ op: 'note', text: `leaves process.env.${name} changed` });
    if (environment[name] === undefined) delete process.env[name];
    else process.env[name] = environment[name];
  }
  for (const { owner, name, real } of CLOCKS) {
    if (owner[name] === real) continue;
    send({ op: 'note', text: `leaves ${name} replaced` });
    owner[name] = real;
  }
  // Ids only increase, so they stay where a later clock took them, and resources that are made one after the other have the same time.
  if (timeOfId(newId('request')) > Date.now() + 50) send({ op: 'spent' });
  if (process.umask(umask) !== umask) send({ op: 'note', text: 'leaves another umask' });
  if (process.cwd() !== root) {
    send({ op: 'note', text: 'leaves another working directory' });
    process.chdir(root);
  }
  if (globals[DISPATCHER] !== dispatcher) {
    send({ op: 'note', text: 'leaves another agent of fetch' });
    globals[DISPATCHER] = dispatcher;
  }
}

function counted(names: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].map(([name, count]) => `${count} ${name}`).join(', ');
}
