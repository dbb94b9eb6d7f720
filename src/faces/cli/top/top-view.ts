import { safeLine } from '../safe-text.ts';
import { cutTo, widthOf } from '../show/width.ts';
import type { Style } from '../style.ts';
import type { TopKernel, TopSample } from './top-sample.ts';

export interface TopSpace {
  readonly columns: number;
  /** How many lines fit. */
  readonly rows: number;
}

const MIB = 2 ** 20;
const GIB = 2 ** 30;

/** Returns the lines that show a sample: cut to the width of the terminal, and no more than its rows. */
export function topLines(sample: TopSample, { columns, rows }: TopSpace, style: Style): string[] {
  const head = headLines(sample);
  const room = Math.max(0, rows - head.length - 2);
  const table = kernelTable(sample, columns, room);
  const lines = [...head, '', ...table].slice(0, rows).map((line) => cutTo(safeLine(line), columns));
  const heading = head.length + 1;
  return lines.map((line, at) => (at === 0 || at === heading ? style.bold(line) : line));
}

function headLines(sample: TopSample): string[] {
  const { versions, process, kernelHost, store, limits } = sample;
  const upS = (Date.parse(sample.sampledAt) - Date.parse(sample.startedAt)) / 1000;
  const { delayP99Ms } = process.eventLoop;
  const delay = delayP99Ms === null ? '' : `, delay ${delayP99Ms.toFixed(0)} ms (p99)`;
  const memory = sample.kernels.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0);
  const limit = limits.kernelMemoryBytes === null ? '' : ` of ${sizeText(limits.kernelMemoryBytes)} each`;
  return [
    `troupe ${versions.troupe}  up ${upText(upS)}  kernel host ${kernelHost.state}`,
    `server   cpu ${percent(sample.cpuShare)}  memory ${sizeText(process.memoryBytes)}  event loop ${percent(sample.busyShare)} busy${delay}`,
    `store    ${sizeText(store.usedBytes)}, ${sizeText(store.reusableBytes)} free within${store.isFull ? ', THE DISK IS FULL' : ''}  streams ${sample.streams}  requests ${sample.requests}`,
    ...sample.warnings.map((warning) => `WARNING  ${warning}`),
    ...workerLines(sample),
    ...actorLines(sample),
    `kernels  ${sample.kernels.length}  memory ${sizeText(memory)}${limit}`,
  ];
}

/** Returns one line for each worker of a server that has several, and one line for the workers that have not answered. */
function workerLines({ workers = [], silentWorkers = 0 }: TopSample): string[] {
  const lines = workers.map(
    ({ worker, cpuShare, busyShare, memoryBytes, kernels, requests, streams }) =>
      `worker ${worker}  cpu ${percent(cpuShare)}  memory ${sizeText(memoryBytes)}  event loop ${percent(busyShare)} busy  kernels ${kernels}  streams ${streams}  requests ${requests}`,
  );
  return silentWorkers === 0 ? lines : [...lines, `${silentWorkers} WORKERS DO NOT ANSWER`];
}

/** Returns one line for each kind of actor, with how many are in each state. */
function actorLines({ actors }: TopSample): string[] {
  const kinds = new Map<string, string[]>();
  for (const { kind, state, count } of actors) {
    kinds.set(kind, [...(kinds.get(kind) ?? []), `${state} ${count}`]);
  }
  return [...kinds].map(([kind, states]) => `${kind}  ${states.join('  ')}`);
}

function kernelTable({ kernels }: TopSample, columns: number, room: number): string[] {
  const heading = ['CPU', 'MEMORY', 'PID', 'SESSION', 'WORKSPACE'];
  const shown = kernels.slice(0, room);
  const rows = [heading, ...shown.map(cellsOf)];
  // On a narrow terminal the session matters more than the process and the workspace.
  const wanted = columns < 60 ? [0, 1, 3] : [0, 1, 2, 3, 4];
  const widths = wanted.map((at) => Math.max(...rows.map((row) => widthOf(row[at] ?? ''))));
  const lines = rows.map((row) =>
    wanted
      .map((at, place) => {
        const cell = row[at] ?? '';
        return at < 3 ? cell.padStart(widths[place] ?? 0) : cell.padEnd(widths[place] ?? 0);
      })
      .join('  ')
      .trimEnd(),
  );
  if (kernels.length > shown.length && lines.length > 1) {
    lines[lines.length - 1] = `and ${kernels.length - shown.length + 1} more`;
  }
  return lines;
}

function cellsOf({ cpuShare, memoryBytes, node, pid, sessionId, workspaceId }: TopKernel): string[] {
  const process = node === null ? String(pid) : `${node}:${pid}`;
  return [percent(cpuShare), sizeText(memoryBytes), process, sessionId, workspaceId];
}

function percent(share: number): string {
  return `${(share * 100).toFixed(share < 0.1 ? 1 : 0)}%`;
}

function sizeText(bytes: number): string {
  return bytes >= GIB
    ? `${(bytes / GIB).toFixed(1)} GiB`
    : `${(bytes / MIB).toFixed(bytes < 10 * MIB ? 1 : 0)} MiB`;
}

function upText(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`;
}
