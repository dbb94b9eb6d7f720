// The bundles. Node.js needs longer to find and read the hundreds of small modules of the server and its packages than
// to run them: with bundles the first response takes about half the time, and with the compiled code of the bundles
// (code-cache.mjs) a third less again.
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { basename, join } from 'node:path';
import { writeApiPage } from './api-page.mjs';
import { bundleConsole } from './console-bundle.mjs';
import { digest, readStamp, writeStamp } from './stamps.mjs';

/** The programs in `dist/server`, each with its bundle. */
const PROGRAMS = { main: 'src/start/main.js', cli: 'src/faces/cli/main.js', node: 'src/start/node-main.js' };

// The packages that every start loads; most of them consist of many modules. Other packages are not bundled. Some
// look for a native binary next to their own files, some are optional, and a CommonJS package that is imported on
// demand would lose its named exports.
const BUNDLED = /^(typebox|xstate|pino|commander|tweetnacl|@msgpack\/msgpack)(\/|$)/;

const otherPackages = {
  name: 'other-packages',
  setup({ onResolve }) {
    onResolve({ filter: /^[^./#]/ }, ({ path, importer, kind }) => {
      const isOurs = kind !== 'entry-point' && !importer.includes('/node_modules/');
      return isOurs && !BUNDLED.test(path) ? { path, external: true } : undefined;
    });
  },
};

const STARTER = new URL('./program.mjs', import.meta.url);

const COMMON = {
  bundle: true,
  platform: 'node',
  target: 'node20',
  logLevel: 'silent', // the error holds the messages
};

/** Writes `dist/server`, `dist/console`, `dist/docs` and `dist/node_modules`. Rejects with esbuild's error when a module cannot be resolved. */
export async function bundle(root) {
  const { build } = await import('esbuild');
  await bundleTypebox(root, build);
  writeApiPage(root);
  await Promise.all([bundlePrograms(root, build), bundleConsole(root)]);
}

/**
 * Modules that are imported on demand are part of the bundle as well. V8 compiles and runs them only when they are
 * imported.
 */
async function bundlePrograms(root, build) {
  const present = Object.entries(PROGRAMS).filter(([, path]) => existsSync(join(root, 'dist', path)));
  if (present.length === 0) return;
  const outdir = join(root, 'dist', 'server');
  rmSync(outdir, { recursive: true, force: true });
  const { metafile } = await build({
    ...COMMON,
    absWorkingDir: root,
    entryPoints: Object.fromEntries(present.map(([name, path]) => [name, join('dist', path)])),
    outdir,
    entryNames: '[name]-[hash]',
    outExtension: { '.js': '.cjs' },
    format: 'cjs',
    supported: { 'dynamic-import': false }, // a script of V8 has no `import`; packages are required instead
    define: { 'import.meta.url': 'importMetaUrl' },
    banner: { js: '(function (require, module, exports, importMetaUrl, importModule) {' },
    footer: { js: '})' },
    legalComments: 'none', // the installed packages have these comments, and without them the bundles are pure ASCII
    sourcemap: true,
    sourcesContent: false,
    minifyWhitespace: true,
    minifySyntax: true,
    metafile: true,
    plugins: [otherPackages],
  });
  const starter = readFileSync(STARTER, 'utf8');
  for (const [output, { entryPoint }] of Object.entries(metafile.outputs)) {
    const [name] = present.find(([, path]) => entryPoint === `dist/${path}`) ?? [];
    if (name !== undefined)
      writeFileSync(join(outdir, `${name}.js`), starter.replace('BUNDLE', basename(output)));
  }
}

/**
 * Bundles typebox, which alone has 700 modules. Tests and benchmarks load it from `dist/src` many times, not from a
 * bundle. For modules below `dist`, `dist/node_modules/typebox` takes precedence over the real package.
 */
async function bundleTypebox(root, build) {
  const source = join(root, 'node_modules', 'typebox');
  const target = join(root, 'dist', 'node_modules', 'typebox');
  if (!existsSync(source)) return;
  const description = readFileSync(join(source, 'package.json'), 'utf8');
  const wanted = digest(description, readFileSync(new URL(import.meta.url), 'utf8'));
  if (readStamp(join(target, '.troupe-stamp')) === wanted) return;
  const { name, version, exports } = JSON.parse(description);
  const entries = Object.entries(exports).map(([entry, { default: file }]) => ({
    entry,
    file,
    out: entry === '.' ? 'index' : entry.slice('./'.length),
  }));
  const work = `${target}.new`;
  rmSync(work, { recursive: true, force: true });
  mkdirSync(work, { recursive: true });
  await build({
    ...COMMON,
    format: 'esm',
    splitting: true,
    absWorkingDir: source,
    entryPoints: Object.fromEntries(entries.map(({ file, out }) => [out, join(source, file)])),
    outExtension: { '.js': '.mjs' },
    outdir: work,
    external: builtinModules,
  });
  const bundled = Object.fromEntries(entries.map(({ entry, out }) => [entry, `./${out}.mjs`]));
  writeFileSync(
    join(work, 'package.json'),
    JSON.stringify({ name, version, type: 'module', exports: bundled }),
  );
  writeStamp(join(work, '.troupe-stamp'), wanted);
  rmSync(target, { recursive: true, force: true });
  renameSync(work, target);
}
