/** Simulates in a process of its own, because the clocks of a process that simulates are those of the simulated world for ever. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export interface SimulationRun {
  readonly isSound: boolean;
  readonly text: string;
  /** By seed. */
  readonly digests: ReadonlyMap<number, string>;
}

/** Resolves when `npm run simulate` with these options has ended. */
export function runSimulation(...options: readonly string[]): Promise<SimulationRun> {
  return runSimulationWith(process.execPath, ...options);
}

/** The same, with another program of Node.js. */
export async function runSimulationWith(node: string, ...options: readonly string[]): Promise<SimulationRun> {
  const program = fileURLToPath(new URL('main.js', import.meta.url));
  const child = spawn(node, ['--enable-source-maps', program, ...options], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const end = () => void child.kill('SIGKILL');
  process.once('exit', end);
  const chunks: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  process.off('exit', end);
  const text = Buffer.concat(chunks).toString();
  const found = [...text.matchAll(/^seed (\d+): ([0-9a-f]{16}),/gm)];
  return {
    isSound: code === 0,
    text,
    digests: new Map(found.map(([, seed, digest]) => [Number(seed), digest!])),
  };
}
