// `troupe models add-local`: creates a separate Python environment with llama.cpp, which serves model files.
import { join } from 'node:path';
import { endingWithUs, run } from './children.mjs';
import { ROOT } from './setup.mjs';
import { digest, readStamp, writeStamp } from './stamps.mjs';

const REQUIREMENT = 'xllamacpp==2026.10.11549';

/**
 * Installs the missing parts and returns one line that names the installed ones. Rejects with a `SetupError`.
 * Idempotent.
 */
export async function addLocalModel(root = ROOT) {
  const venv = join(root, '.venv-local-model');
  const stamp = join(venv, '.troupe-stamp');
  const wanted = digest(REQUIREMENT);
  if (readStamp(stamp) !== wanted) {
    await endingWithUs(async () => {
      const failure = 'llama.cpp cannot be installed';
      await run('python3', ['-m', 'venv', '--clear', venv], { cwd: root, failure });
      const quiet = ['--disable-pip-version-check', '--no-input', '--quiet', '--progress-bar', 'off'];
      const args = ['-m', 'pip', 'install', ...quiet, REQUIREMENT];
      await run(join(venv, 'bin', 'python'), args, { cwd: root, failure });
      await run(join(venv, 'bin', 'python'), ['-c', 'import xllamacpp'], { cwd: root, failure });
    });
    writeStamp(stamp, wanted);
  }
  return `${REQUIREMENT} is installed. Set TROUPE_LOCAL_MODEL to a GGUF file and restart the server.`;
}
