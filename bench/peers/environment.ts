/** The Python environment of the servers that Troupe is compared with: below .bench-packages/, apart from Troupe's own. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const FOLDER = join(ROOT, '.bench-packages');
const PREFIX = 'peers-';
/** Written last, so that an incomplete installation is not taken for a complete one. */
const STAMP = 'complete';

/** The folder with the Python files of the comparisons. */
export const PEERS_FOLDER = join(ROOT, 'bench', 'peers');

/**
 * Returns the interpreter of the environment, which has exactly the packages that requirements.txt pins. The
 * first call installs the environment, and removes environments of other versions. Rejects with the output of
 * pip when that fails.
 */
export async function peersPython(say: (line: string) => void): Promise<string> {
  const requirements = join(PEERS_FOLDER, 'requirements.txt');
  const text = readFileSync(requirements, 'utf8');
  const name = `${PREFIX}${createHash('sha256').update(text).digest('hex').slice(0, 12)}`;
  const place = join(FOLDER, name);
  const python = join(place, 'bin', 'python');
  if (existsSync(join(place, STAMP))) return python;
  const old = existsSync(FOLDER) ? readdirSync(FOLDER).filter((entry) => entry.startsWith(PREFIX)) : [];
  for (const entry of old) rmSync(join(FOLDER, entry), { recursive: true, force: true });
  const packages = text.split('\n').filter((line) => line.includes('==')).length;
  say(`installing the servers to compare with, ${packages} Python packages, into .bench-packages/${name} …`);
  const startedAt = performance.now();
  await run('python3', ['-m', 'venv', place]);
  const quiet = ['--disable-pip-version-check', '--no-input', '--progress-bar', 'off'];
  let found = 0;
  await run(python, ['-m', 'pip', 'install', ...quiet, '--requirement', requirements], (line) => {
    if (line.startsWith('Collecting') && ++found % 20 === 0) say(`  ${found} of ${packages} packages found`);
    if (line.startsWith('Installing')) say('  installing them');
  });
  writeFileSync(join(place, STAMP), '');
  say(`installed in ${((performance.now() - startedAt) / 1000).toFixed(0)} s`);
  return python;
}

async function run(
  program: string,
  args: readonly string[],
  onLine: (line: string) => void = () => undefined,
) {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  const note = (line: string) => {
    said = `${said}${line}\n`.slice(-4_000);
  };
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      note(line);
      onLine(line);
    });
  }
  const stop = () => void child.kill('SIGKILL');
  process.once('exit', stop);
  const [code] = (await once(child, 'close')) as [number | null];
  process.off('exit', stop);
  if (code !== 0) throw new Error(`${program} ${args.join(' ')} failed:\n${said}`);
}
