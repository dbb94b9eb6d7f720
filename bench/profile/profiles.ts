/** Writes profiles of a unit of work: for the tools of browsers and editors, and as flame graphs. */
import { mkdirSync, writeFileSync } from 'node:fs';
import type { HeapProfiler, Profiler, Runtime } from 'node:inspector';
import { join } from 'node:path';
import { type Launch, withProbe } from '../counting/tally.ts';
import type { UnitOfWork } from '../counting/unit.ts';
import { type FlameNode, flameGraph } from './flame-graph.ts';
import { placeOf } from './source-places.ts';

/** Profiles cover more units than counts do, because their samples need enough time. */
const UNITS_FOR_A_COUNT = 5;
/** The ending of the file with the flame graph of processor time. */
export const CPU_GRAPH = '-cpu.svg';
const IDLE = '(idle)';

/** Writes the profiles of a scenario into a folder. Returns the paths. */
export async function writeProfiles(
  scenario: string,
  unit: UnitOfWork,
  launch: Launch,
  { folder, quick }: { readonly folder: string; readonly quick: boolean },
): Promise<readonly string[]> {
  const count = quick ? (unit.quickCount ?? Math.ceil(unit.count / 10)) : unit.count * UNITS_FOR_A_COUNT;
  mkdirSync(folder, { recursive: true });
  return withProbe(unit, launch, Math.ceil(count / 4), async ({ probe, work }) => {
    const perform = async () => void (await work.perform(count));
    const cpu = await probe.cpuProfile(perform);
    const allocations = await probe.allocations(perform);
    const each = `for one ${unit.name} of ${count}`;
    return [
      write(folder, `${scenario}.cpuprofile`, JSON.stringify(cpu)),
      write(
        folder,
        `${scenario}${CPU_GRAPH}`,
        flameGraph(
          cpuTree(cpu),
          `${scenario}: CPU of the main thread ${each}`,
          (us) => `${(us / count).toFixed(1)} µs`,
        ),
      ),
      write(folder, `${scenario}.heapprofile`, JSON.stringify(allocations)),
      write(
        folder,
        `${scenario}-allocations.svg`,
        flameGraph(
          heapTree(allocations.head),
          `${scenario}: allocated by V8 ${each}`,
          (bytes) => `${(bytes / count / 1024).toFixed(2)} KiB`,
        ),
      ),
    ];
  });
}

function write(folder: string, name: string, content: string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

/** Returns the call tree with the time of each function's samples, without idle time. */
function cpuTree({ nodes, samples = [], timeDeltas = [] }: Profiler.Profile): FlameNode {
  const self = new Map<number, number>();
  for (const [i, id] of samples.entries())
    self.set(id, (self.get(id) ?? 0) + Math.max(0, timeDeltas[i] ?? 0));
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const treeOf = (node: Profiler.ProfileNode): FlameNode => ({
    ...namesOf(node.callFrame),
    self: self.get(node.id) ?? 0,
    children: (node.children ?? [])
      .map((id) => byId.get(id)!)
      .filter(({ callFrame }) => !isOfNobody(callFrame))
      .map(treeOf),
  });
  return treeOf(nodes[0]!);
}

function heapTree({ callFrame, selfSize, children }: HeapProfiler.SamplingHeapProfileNode): FlameNode {
  const own = children.filter((child) => !isOfNobody(child.callFrame));
  return { ...namesOf(callFrame), self: selfSize, children: own.map(heapTree) };
}

function namesOf(callFrame: Runtime.CallFrame) {
  return { name: callFrame.functionName || '(anonymous)', place: placeOf(callFrame) };
}

/** Whether the function belongs to the profiling itself, or to idling. */
function isOfNobody({ functionName, url }: Runtime.CallFrame): boolean {
  return functionName === IDLE || url.startsWith('node:inspector');
}
