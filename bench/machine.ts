/** Describes the machine on which the figures were measured. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, loadavg, release, totalmem } from 'node:os';

/** The machine, and its load before the measurements. */
export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly kernel: string;
  readonly system: string;
  readonly node: string;
  readonly python: string;
  readonly date: string;
  /** Load of the minute before the run. Above 0.3, other programs were running. */
  readonly load: number;
}

/** Returns the description of this machine. */
export function describeMachine(python: string): Machine {
  const all = cpus();
  return {
    cpu: all[0]?.model ?? 'unknown',
    cores: all.length,
    memoryGiB: Math.round(totalmem() / 1024 ** 3),
    kernel: release(),
    system: systemName(),
    node: process.versions.node,
    python: pythonVersion(python),
    date: new Date().toISOString().slice(0, 10),
    load: Math.round(loadavg()[0]! * 100) / 100,
  };
}

function systemName(): string {
  try {
    return /^PRETTY_NAME="(.*)"$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? 'Linux';
  } catch {
    return process.platform; // the file exists on Linux only
  }
}

function pythonVersion(python: string): string {
  const code = 'import sys, marimo; print(sys.version.split()[0], "with marimo", marimo.__version__)';
  try {
    return execFileSync(python, ['-c', code], { encoding: 'utf8' }).trim();
  } catch {
    return 'unknown'; // the scenarios will fail with the reason
  }
}
