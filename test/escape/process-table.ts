/** Reads the rights and open files of every process below a server from /proc. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { descendants, processFact } from '#test/support/processes.ts';

export interface ConfinedProcess {
  readonly pid: number;
  readonly role: string;
  /** 2 means that a filter of system calls is active. */
  readonly seccomp: string;
  readonly noNewPrivileges: string;
  /** Effective, permitted and bounding capabilities. */
  readonly capabilities: readonly string[];
  /** Kinds of namespaces that are not the server's. */
  readonly namespaces: readonly string[];
  /** The targets of the open descriptors. */
  readonly descriptors: ReadonlyMap<number, string>;
  /** The same with the flags with which each was opened: see `openingsOf`. */
  readonly openings: ReadonlyMap<number, string>;
}

const NAMESPACES = ['ipc', 'mnt', 'net', 'pid', 'user'];

/**
 * Every process below `server`. One that ended, or became something else, while it was looked at is left out, and so is
 * one that the server has forked and that has not become another program yet.
 */
export function listProcesses(server: number): ConfinedProcess[] {
  const command = (pid: number) => readFileSync(`/proc/${pid}/cmdline`, 'latin1');
  return descendants(server).flatMap(({ pid, name }) => {
    try {
      if (['', command(server)].includes(command(pid))) return [];
      const seen = look(pid, name, server);
      return processFact(pid)?.name === name && roleOf(pid, name) === seen.role ? [seen] : [];
    } catch (error) {
      if (/ENOENT|ESRCH/.test(String(error))) return [];
      throw error;
    }
  });
}

function look(pid: number, name: string, server: number): ConfinedProcess {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  const field = (label: string) => new RegExp(`^${label}:\\s*(.*)$`, 'm').exec(status)?.[1] ?? '';
  return {
    pid,
    role: roleOf(pid, name),
    seccomp: field('Seccomp'),
    noNewPrivileges: field('NoNewPrivs'),
    capabilities: ['CapEff', 'CapPrm', 'CapBnd'].map(field),
    namespaces: NAMESPACES.filter((kind) => namespaceOf(pid, kind) !== namespaceOf(server, kind)),
    descriptors: descriptorsOf(pid),
    openings: openingsOf(pid),
  };
}

/**
 * Returns the name that one of our processes has set for itself. Another program is recognised by
 * its arguments.
 */
function roleOf(pid: number, name: string): string {
  const command = readFileSync(`/proc/${pid}/cmdline`, 'latin1');
  if (command.split('\0').includes('--worker')) return 'worker';
  if (command.includes('local_model.py')) return 'local model';
  if (command.includes('engine-main')) return 'engine';
  // A fork of uv has the name of one of uv's threads until it becomes another program.
  if (command.split('\0', 1)[0]?.endsWith('/uv')) return 'uv';
  return name.replace(/^troupe-/, '');
}

function namespaceOf(pid: number, kind: string): string {
  return readlinkSync(`/proc/${pid}/ns/${kind}`);
}

/** Descriptor → its target. */
export function descriptorsOf(pid: number): Map<number, string> {
  const folder = `/proc/${pid}/fd`;
  return new Map(
    readdirSync(folder).flatMap((name): [number, string][] => {
      try {
        return [[Number(name), readlinkSync(`${folder}/${name}`)]];
      } catch {
        return []; // it was closed meanwhile
      }
    }),
  );
}

/** A descriptor is closed or kept by the program that its process becomes, so this flag is not one of the opened file. */
const CLOSE_ON_EXEC = 0o2000000;

/** Descriptor → the flags of the opened file and where it leads to. Two processes that share an opened file have the same text. */
export function openingsOf(pid: number): Map<number, string> {
  return new Map(
    [...descriptorsOf(pid)].flatMap(([descriptor, target]): [number, string][] => {
      try {
        const [, flags = ''] =
          /^flags:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/fdinfo/${descriptor}`, 'latin1')) ?? [];
        return [[descriptor, `${Number.parseInt(flags, 8) & ~CLOSE_ON_EXEC} ${target}`]];
      } catch {
        return []; // it was closed meanwhile
      }
    }),
  );
}
