// typebox is 700 small ES modules, and Node.js takes 0.3 s to load them: more than everything else of a start. So the
// build joins them to one file that stands in front of the real package for what is below dist/. Without it (a build by
// tsc alone) the real package is used: the same code, loaded more slowly.
import { cpSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, posix, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { run } from './children.mjs';
import { SetupError } from './say.mjs';
import { digest, filesBelow, readStamp, writeStamp } from './stamps.mjs';

const THIS_FILE = fileURLToPath(import.meta.url);
const STAMP = '.troupe-stamp';

// An import would search all of the file for names to export, which nobody needs.
const LOAD = `import { createRequire } from 'node:module';
const load = createRequire(import.meta.url)('./joined.cjs');
`;

/** Writes dist/node_modules/typebox, unless it is there. Rejects with a `SetupError`. */
export async function joinTypebox(root, keepOpen) {
  const source = join(root, 'node_modules', 'typebox');
  const target = join(root, 'dist', 'node_modules', 'typebox');
  const made = digest(...[join(source, 'package.json'), THIS_FILE].map((file) => readFileSync(file, 'utf8')));
  if (readStamp(join(target, STAMP)) === made) return;
  const work = mkdtempSync(join(tmpdir(), 'troupe-typebox-'));
  try {
    const description = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8'));
    await translate(root, source, work, keepOpen);
    const written = join(work, 'typebox');
    mkdirSync(written);
    writeFileSync(join(written, 'joined.cjs'), joined(join(work, 'translated')));
    cpSync(join(source, 'license'), join(written, 'license'));
    await writeEntries(source, written, description);
    writeStamp(join(written, STAMP), made);
    rmSync(target, { recursive: true, force: true });
    mkdirSync(join(root, 'dist', 'node_modules'), { recursive: true });
    cpSync(written, `${target}.new`, { recursive: true });
    renameSync(`${target}.new`, target);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** From ES modules to CommonJS, by the compiler: in `translated` below `work`. */
async function translate(root, source, work, keepOpen) {
  const modules = join(work, 'modules');
  for (const file of filesBelow(source, 'build', '.mjs')) {
    const text = readFileSync(join(source, file), 'utf8');
    const path = join(modules, `${file.slice(0, -'.mjs'.length)}.js`);
    mkdirSync(join(path, '..'), { recursive: true });
    writeFileSync(path, text.replace(/\b(from|import) (['"])(\.[^'"]*)\.mjs\2/g, '$1 $2$3.js$2'));
  }
  writeFileSync(join(modules, 'package.json'), '{"type":"commonjs"}');
  const options = {
    allowJs: true,
    noCheck: true,
    removeComments: true,
    module: 'nodenext',
    target: 'es2023',
    types: [],
  };
  const compilerOptions = { ...options, rootDir: 'modules', outDir: 'translated' };
  writeFileSync(join(work, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['modules'] }));
  const tsc = join(root, 'node_modules', '.bin', 'tsc');
  await run(tsc, ['-p', work, '--pretty', 'false'], {
    cwd: work,
    failure: 'typebox was not translated',
    keepOpen,
  });
}

/**
 * All modules as functions by path, and a `require` for them. Where modules import each other in a circle, what one
 * passes on of another (`export *`) may not be there yet; it is passed on once the first module is loaded.
 */
function joined(folder) {
  const functions = filesBelow(folder, 'build', '.js').map((file) => {
    const id = file.split('\\').join('/');
    const text = readFileSync(join(folder, file), 'utf8').replace(
      /\brequire\("(\.[^"]+)"\)/g,
      (_, path) => `require(${JSON.stringify(posix.join(posix.dirname(id), path))})`,
    );
    // In parentheses it is compiled at once: else the engine would read it twice.
    return `${JSON.stringify(id)}: (function (exports) {\n${text}\n})`;
  });
  return `'use strict';
const loaded = new Map();
const passedOn = [];
function passOn(from, to) {
  const names = Object.keys(from).filter((name) => name !== 'default' && !Object.hasOwn(to, name));
  for (const name of names) Object.defineProperty(to, name, { enumerable: true, get: () => from[name] });
  return names.length > 0;
}
const helpers = {
  __importStar: (module) => module,
  __exportStar(from, to) {
    passOn(from, to);
    passedOn.push([from, to]);
  },
};
let depth = 0;
function require(id) {
  const known = loaded.get(id);
  if (known !== undefined) return known;
  const exports = {};
  loaded.set(id, exports);
  depth++;
  modules[id].call(helpers, exports);
  if (--depth === 0) while (passedOn.filter(([from, to]) => passOn(from, to)).length > 0);
  return exports;
}
const modules = {
${functions.join(',\n')}
};
module.exports = require;
`;
}

/** One small ES module for each entry of the package, with exactly the names that the real one has. */
async function writeEntries(source, written, { name, version, exports }) {
  const load = createRequire(import.meta.url)(join(written, 'joined.cjs'));
  const entries = {};
  for (const [entry, { default: file }] of Object.entries(exports)) {
    const id = `${posix.normalize(file).slice(0, -'.mjs'.length)}.js`;
    const real = await import(pathToFileURL(join(source, file)).href);
    const names = Object.keys(real);
    const other = names.filter((one) => typeof load(id)[one] !== typeof real[one]);
    if (other.length > 0) throw new SetupError(`typebox was not joined: ${file} lacks ${other.join(', ')}.`);
    const lines = names.map(
      (one, i) => `const e${i} = entry[${JSON.stringify(one)}];\nexport { e${i} as ${one} };`,
    );
    const output = `${entry === '.' ? 'index' : relative('.', entry)}.mjs`;
    const head = `${LOAD}const entry = load(${JSON.stringify(id)});\n`;
    writeFileSync(join(written, output), `${head}${lines.join('\n')}\n`);
    entries[entry] = `./${output}`;
  }
  const description = { name, version, type: 'module', exports: entries };
  writeFileSync(join(written, 'package.json'), JSON.stringify(description));
}
