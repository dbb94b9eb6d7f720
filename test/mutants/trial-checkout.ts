/**
 * The copy of the checkout in which mutants are tried, so that no way out, not even `kill -9`, leaves an edit in the checkout of the
 * user. It lies in the folder for temporary files, has the installed packages as hard links, and is removed at the end.
 */
import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { transform } from 'esbuild';

/** Folders that git ignores and tests need. Set-up makes them. */
const INSTALLED = ['node_modules', '.venv', '.venv-local-model'];
const BUILT = ['dist', '.setup'];
const KEPT = '.setup/server';
const RELATIVE_IMPORT = /((?:\bfrom|\bimport|\bimport\()\s*)(['"])(\.{1,2}\/[^'"]+)\.ts\2/g;

export class TrialCheckout implements Disposable {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  /** Copies the checkout at `root`: its files as they are now, and its build. */
  static of(root: string): TrialCheckout {
    const copy = new TrialCheckout(mkdtempSync(join(tmpdir(), 'troupe-mutants-')));
    chmodSync(copy.path, 0o755); // some tests run programs as another user
    try {
      const listed = ['ls-files', '--cached', '--others', '--exclude-standard', '-z'];
      const files = execFileSync('git', listed, { cwd: root, maxBuffer: 2 ** 28 })
        .toString()
        .split('\0');
      const present = files.filter((file) => file !== '' && existsSync(join(root, file)));
      execFileSync('cp', ['--parents', '-P', '-p', '-t', copy.path, ...present], { cwd: root });
      for (const folder of BUILT.filter((one) => existsSync(join(root, one))))
        execFileSync('cp', ['-a', join(root, folder), copy.path]);
      for (const folder of INSTALLED) copyLinked(join(root, folder), copy.path);
      // Some tests ask git for the files of the checkout.
      execFileSync('git', ['init', '-q'], { cwd: copy.path });
      execFileSync('git', ['add', '--all'], { cwd: copy.path });
      return copy;
    } catch (error) {
      copy[Symbol.dispose]();
      throw error;
    }
  }

  read(file: string): string {
    return readFileSync(join(this.path, file), 'utf8');
  }

  write(file: string, text: string): void {
    writeFileSync(join(this.path, file), text);
  }

  /** Replaces the compiled form of one file: only its types are removed, so that this takes no time. */
  async compile(file: string): Promise<void> {
    const { code } = await transform(this.read(file), {
      loader: 'ts',
      format: 'esm',
      target: 'es2023',
      sourcemap: 'inline',
      sourcefile: join(this.path, file),
      tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
    });
    const output = join('dist', file.replace(/\.ts$/, '.js'));
    mkdirSync(dirname(join(this.path, output)), { recursive: true });
    this.write(output, code.replace(RELATIVE_IMPORT, '$1$2$3.js$2'));
  }

  /** Writes the bundles, from which the server runs when it has a process of its own. The first time it keeps those of the build. */
  async bundle(): Promise<void> {
    if (!existsSync(join(this.path, KEPT)))
      execFileSync('cp', ['-al', 'dist/server', KEPT], { cwd: this.path });
    const { bundle } = (await import(pathToFileURL(join(this.path, 'src/setup/bundle.mjs')).href)) as {
      bundle(root: string): Promise<void>;
    };
    await bundle(this.path);
  }

  /** Puts the bundles of the build back, if they were replaced. */
  restoreBundle(): void {
    if (!existsSync(join(this.path, KEPT))) return;
    rmSync(join(this.path, 'dist/server'), { recursive: true, force: true });
    execFileSync('cp', ['-al', KEPT, 'dist/server'], { cwd: this.path });
  }

  /** Checks the types of all sources. Resolves with the complaints of the compiler; they are empty when there are none. */
  checkTypes(): Promise<string> {
    return new Promise((resolve) => {
      const tsc = join(this.path, 'node_modules/.bin/tsc');
      const child = spawn(tsc, ['-p', '.', '--noEmit', '--pretty', 'false'], { cwd: this.path });
      let text = '';
      for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece) => (text += piece));
      child.once('error', (error) => resolve(error.message));
      child.once('close', (code) => resolve(code === 0 ? '' : text));
    });
  }

  /** Removes the copy. Idempotent. */
  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Copies a folder as hard links, or as files where the copy is on another disk. */
function copyLinked(from: string, to: string): void {
  if (!existsSync(from)) return;
  try {
    execFileSync('cp', ['-al', from, to], { stdio: 'ignore' });
  } catch {
    execFileSync('cp', ['-a', from, to]);
  }
}
