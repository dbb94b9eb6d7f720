/** Other machines: network namespaces of this one, each with a cable to this machine that can be pulled. Only root can make them. */
import { execFileSync } from 'node:child_process';
import type { Owner } from './server-fixture.ts';

export interface Machine {
  /** The address of this machine, as the other one reaches it. */
  readonly here: string;
  /** The program and arguments that run a command on the other machine. */
  readonly command: readonly string[];
  /** Pulls the cable: nothing arrives in either direction, and no connection ends. */
  cut(): void;
  join(): void;
}

let machines = 0;

/** Returns why no machine can be made; undefined when one can. */
export function whyNoMachines(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    return 'network namespaces need Linux and root';
  try {
    execFileSync('ip', ['netns', 'list'], { stdio: 'ignore' });
    return undefined;
  } catch {
    return 'network namespaces need ip(8)';
  }
}

/** Makes a machine, which is gone when the owner ends. */
export function makeMachine(owner: Owner): Machine {
  const number = machines++;
  const name = `troupe-${process.pid}-${number}`;
  const [ours, theirs] = [`tr${process.pid}a${number}`.slice(-15), `tr${process.pid}b${number}`.slice(-15)];
  // The addresses are reserved for benchmarks (RFC 2544), so no real network has them. Each machine has four, which depend on the id
  // of this process: other tests that run at the same time have others.
  const base = ((process.pid * 8 + number) % 2 ** 14) * 4;
  const [here, there] = [1, 2].map((last) => `198.18.${(base + last) >> 8}.${(base + last) & 255}`) as [
    string,
    string,
  ];
  const ip = (...args: string[]) => void execFileSync('ip', args);
  ip('netns', 'add', name);
  owner.after(async () => ip('netns', 'del', name));
  ip('link', 'add', ours, 'type', 'veth', 'peer', 'name', theirs, 'netns', name);
  ip('addr', 'add', `${here}/30`, 'dev', ours);
  ip('link', 'set', ours, 'up');
  ip('-n', name, 'link', 'set', 'lo', 'up');
  ip('-n', name, 'addr', 'add', `${there}/30`, 'dev', theirs);
  ip('-n', name, 'link', 'set', theirs, 'up');
  return {
    here,
    command: ['ip', 'netns', 'exec', name],
    cut: () => ip('link', 'set', ours, 'down'),
    join: () => ip('link', 'set', ours, 'up'),
  };
}
