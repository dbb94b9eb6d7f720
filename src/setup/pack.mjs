// Runs before `npm pack`: builds the checkout, and writes the commit into a file, because a package has no Git
// history. With `--after`, removes it.
import { execFileSync } from 'node:child_process';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { reporting } from './console.mjs';
import { ROOT, setUpPrograms } from './setup.mjs';

const COMMIT = join(ROOT, 'dist', 'commit.txt');

async function before() {
  await setUpPrograms();
  // A checkout without its Git history has no commit.
  if (!existsSync(join(ROOT, '.git'))) return;
  writeFileSync(COMMIT, execFileSync('git', ['-C', ROOT, 'rev-parse', 'HEAD']));
}

if (process.argv[2] === '--after') rmSync(COMMIT, { force: true });
else await reporting(before);
