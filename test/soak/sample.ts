/** The resources of a server at rest. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ChildServer } from '#test/support/child-server.ts';
import { descendants } from '#test/support/processes.ts';
import { OWNER } from '#test/support/server-fixture.ts';
import type { GrowthLimit, Sample } from './slopes.ts';

const MIB = 1024 * 1024;

/**
 * The limits of growth. Memory may grow by the traces of deleted objects (the last thousand actors, the audit, recorded answers
 * of a day), which look like growth in a run of minutes; the numbers of objects must not grow at all.
 */
export const LIMITS: Readonly<Record<string, GrowthLimit>> = {
  anonymousBytes: { perDay: 256 * MIB, noise: 48 * MIB },
  heapBytes: { perDay: 256 * MIB, noise: 24 * MIB },
  storeBytes: { perDay: 1024 * MIB, noise: 32 * MIB },
  descriptors: { perDay: 0, noise: 8 },
  threads: { perDay: 0, noise: 2 },
  processes: { perDay: 0, noise: 4 },
  controlGroups: { perDay: 0, noise: 4 },
};

/** Returns the resources that the server uses now. */
export async function sample(server: ChildServer): Promise<Sample> {
  const { pid, dataDir, baseUrl } = server;
  const children = descendants(pid);
  const metrics = await fetch(`${baseUrl}/metrics`, { headers: { authorization: `Bearer ${OWNER.token}` } });
  const text = await metrics.text();
  return {
    anonymousBytes: statusOf(pid, 'RssAnon') * 1024,
    heapBytes: Number(/^v8js_memory_heap_used_bytes (\S+)$/m.exec(text)?.[1]),
    storeBytes: statSync(join(dataDir, 'store', 'data.mdb')).size,
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
    threads: statusOf(pid, 'Threads'),
    processes: children.length,
    controlGroups: controlGroupsOf(
      pid,
      children.map((child) => child.pid),
    ),
  };
}

function statusOf(pid: number, name: string): number {
  return Number(
    new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1],
  );
}

/** Returns how many control groups the kernel host, one of these processes, has made and not removed. */
function controlGroupsOf(server: number, pids: readonly number[]): number {
  const own = [...readFileSync(`/proc/${server}/cgroup`, 'latin1').matchAll(/^\d+:([^:]*):(.*)$/gm)];
  const folders = own.flatMap(([, controllers, path = '']) =>
    controllers === ''
      ? [join('/sys/fs/cgroup', dirname(path))]
      : [join('/sys/fs/cgroup', controllers ?? '', path)],
  );
  const names = [...new Set(folders)].flatMap(namesIn);
  return names.filter((name) => pids.some((pid) => name.startsWith(`troupe-${pid}-`))).length;
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? [entry.name] : [],
    );
  } catch {
    return [];
  }
}
