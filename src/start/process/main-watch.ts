/**
 * Watches the event loop of a server that is one process. A primary does this for workers; here a thread does. When the loop has not
 * turned for ten seconds, the thread writes to the log where the program is, and ends the process, so that a service manager starts it
 * again. Nothing acknowledged is lost with it.
 */
import inspector from 'node:inspector';
import { Worker } from 'node:worker_threads';

export interface MainWatchOptions {
  /** The time between two looks of the thread, and between two beats of the loop. */
  readonly lookMs?: number;
  /** After the time of so many looks without a beat the process ends. */
  readonly maxLooks?: number;
}

/** What the thread gets: shared memory with the number of beats and whether the process is ending, and the options. */
interface WatchData extends Required<MainWatchOptions> {
  readonly shared: Int32Array;
}

/** Begins to watch, until the process ends. A process with a debugger is not watched, because it may stand at a breakpoint. */
export function watchMainThread({ lookMs = 1000, maxLooks = 10 }: MainWatchOptions = {}): void {
  if (inspector.url() !== undefined) return;
  const shared = new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT));
  const workerData: WatchData = { shared, lookMs, maxLooks };
  // The program is the text of a function, because a thread with a file of its own would need one more bundle.
  const program = `(${watchFrom.toString()})(require('node:worker_threads').workerData, require)`;
  const resourceLimits = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 4 };
  const thread = new Worker(program, {
    eval: true,
    workerData,
    env: {},
    execArgv: [],
    argv: [],
    resourceLimits,
  });
  thread.on('error', () => {}); // without the thread, the server only lacks this check
  thread.unref();
  setInterval(() => Atomics.add(shared, 0, 1), lookMs).unref();
  process.on('exit', () => Atomics.store(shared, 1, 1)); // the last flush of the store may take long
}

/**
 * The program of the thread. It uses nothing of this module, because only its text reaches the thread.
 *
 * Time is not read from a clock: while the process or the machine is stopped the thread does not look, either. Between two looks the
 * processor time of the main thread counts, because on a busy machine it may be ready to run and wait; or the whole time when it sleeps.
 * Nothing counts while it is stopped or waits for a disk.
 */
function watchFrom({ shared, lookMs, maxLooks }: WatchData, load: NodeJS.Require): void {
  const { readFileSync, writeSync } = load('node:fs') as typeof import('node:fs');
  const { Session } = load('node:inspector') as typeof import('node:inspector');
  const { SourceMap } = load('node:module') as typeof import('node:module');
  const { fileURLToPath } = load('node:url') as typeof import('node:url');
  const STACK_MS = 2000;
  /** A clock tick, the unit of processor times in /proc. */
  const TICK_MS = 10;
  /** The addresses of scripts by their ids. */
  const urls = new Map<string, string>();
  let beats = -1;
  let silentMs = 0;
  let ticks = 0;
  const timer = setInterval(look, lookMs);

  function look(): void {
    const seen = Atomics.load(shared, 0);
    const passedMs = sinceLastLookMs();
    silentMs = seen === beats ? silentMs + passedMs : 0;
    beats = seen;
    if (Atomics.load(shared, 1) === 1) clearInterval(timer);
    else if (silentMs >= lookMs * maxLooks) {
      clearInterval(timer);
      showStack();
    }
  }

  /** Returns the time for which the main thread has worked or slept. Its id is that of the process (proc_pid_stat(5)). */
  function sinceLastLookMs(): number {
    const stat = readFileSync(`/proc/self/task/${process.pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const before = ticks;
    ticks = Number(fields[11]) + Number(fields[12]); // user and system time
    if (fields[0] === 'S') return lookMs;
    return fields[0] === 'R' ? (ticks - before) * TICK_MS : 0;
  }

  /** Pauses the main thread for its stack, and ends the process. */
  function showStack(): void {
    setTimeout(() => end('(the program is not in JavaScript)'), STACK_MS);
    const session = new Session();
    session.connectToMainThread();
    session.on('Debugger.scriptParsed', ({ params: { scriptId, url } }) => urls.set(scriptId, url));
    session.on('Debugger.paused', ({ params }) => end(params.callFrames.map(lineOf).join('\n')));
    session.post('Debugger.enable');
    session.post('Debugger.pause');
  }

  function lineOf(frame: import('node:inspector').Debugger.CallFrame): string {
    const { scriptId, lineNumber, columnNumber = 0 } = frame.location;
    const place = placeOf(urls.get(scriptId) ?? '', lineNumber, columnNumber);
    return `    at ${frame.functionName || '<anonymous>'} (${place})`;
  }

  function placeOf(url: string, line: number, column: number): string {
    try {
      const map = new SourceMap(JSON.parse(readFileSync(`${fileURLToPath(url)}.map`, 'utf8')));
      const entry = map.findEntry(line, column);
      if ('originalSource' in entry)
        return `${fileURLToPath(new URL(entry.originalSource, url))}:${entry.originalLine + 1}`;
    } catch {} // Node.js itself has no maps
    return `${url}:${line + 1}:${column + 1}`;
  }

  function end(stack: string): never {
    const seconds = Math.round((lookMs * maxLooks) / 1000);
    const msg = `The server did nothing else for ${seconds} seconds and ends; everything that it has acknowledged is stored.`;
    const entry = { level: 'fatal', time: new Date().toISOString(), stack, msg };
    for (const descriptor of [1, 2]) {
      try {
        writeSync(descriptor, `${JSON.stringify(entry)}\n`);
        break;
      } catch {} // the reader of the log does not take the line
    }
    process.kill(process.pid, 'SIGKILL');
    throw new Error('The process has ended.');
  }
}
