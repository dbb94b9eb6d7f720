// `npm run pack:client`: makes the package `troupe-client` from src/contract/client. dist/client has the contents of
// the package: one module for Node.js and browsers, and declarations that need no other package. The package itself
// is written to the current directory.
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { run } from './children.mjs';
import { reporting } from './console.mjs';
import { SchemaTypes } from './schema-types.mjs';
import { ROOT, setUpPrograms } from './setup.mjs';

const TARGET = ['node20.12', 'chrome123', 'firefox128', 'safari17.5'];
/** Declarations that no exported type needs. */
const INTERNAL = ['operation.d.ts', 'event-parser.d.ts'];
/** Members that neither programs nor the server use, so their names may be shortened. */
const INTERNAL_MEMBERS = /^(hasBegun|isClosed|isFinal|isNew|patienceMs|queue|tagged)$/;

/** Writes dist/client. The build must be there. Returns the folder. */
export async function makeClientPackage(root = ROOT) {
  const folder = join(root, 'dist', 'client');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const { build } = await import('esbuild');
  const options = {
    absWorkingDir: root,
    entryPoints: ['src/contract/client/index.ts'],
    outfile: join(folder, 'index.js'),
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'neutral',
    target: TARGET,
    legalComments: 'none',
    logLevel: 'silent',
    // Constructors set every field, so no code is needed that defines the fields before.
    tsconfigRaw: { compilerOptions: { target: 'es2022', useDefineForClassFields: false } },
  };
  await build({ ...options, plugins: [inlinedPaths(root)] });
  await shortened(join(folder, 'index.js'));
  await writeDeclarations(root, folder);
  const { version, license, engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const description = {
    name: 'troupe-client',
    version,
    description:
      'A client of Troupe, a self-hosted server for notebooks, agents and data. For Node.js and browsers.',
    license,
    type: 'module',
    sideEffects: false,
    exports: { '.': { types: './index.d.ts', default: './index.js' }, './package.json': './package.json' },
    types: './index.d.ts',
    engines,
  };
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(description, null, 2)}\n`);
  copyFileSync(join(root, 'src/contract/client/README.md'), join(folder, 'README.md'));
  copyFileSync(join(root, 'LICENSE'), join(folder, 'LICENSE'));
  return folder;
}

/**
 * Rewrites a module with terser, which makes it 4 % smaller than esbuild alone. A test limits the size of the
 * package.
 */
async function shortened(file) {
  const { minify } = await import('terser');
  const compress = {
    passes: 3,
    pure_getters: true,
    unsafe: true, // no program replaces built-in objects, such as Error
    unsafe_arrows: true,
    hoist_funs: true,
    lhs_constants: false, // "status === 'ready'" compresses better than "'ready' === status"
  };
  const mangle = { properties: { regex: INTERNAL_MEMBERS } };
  const { code } = await minify(readFileSync(file, 'utf8'), { module: true, ecma: 2022, compress, mangle });
  writeFileSync(file, code);
}

/**
 * Replaces the ids of operations by their methods and paths, and leaves out the table of operations, which makes the
 * module a tenth smaller. Fails when a call does not name its operation by a literal.
 */
function inlinedPaths(root) {
  const file = join(root, 'src/contract/wire/paths.ts');
  const source = readFileSync(file, 'utf8');
  const addresses = new Map(
    [...source.matchAll(/^ {2}(\w+): ('[A-Z]+ \/[^']*'),$/gm)].map(([, id, address]) => [id, address]),
  );
  const withoutTable = source
    .replace(/^export const PATHS = .*?^\}[^;]*;/ms, '')
    .replace('PATHS[id].split', 'id.split');
  return {
    name: 'inlined-paths',
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^\.\.\/wire\/paths\.ts$/ }, () => ({ path: file }));
      onLoad({ filter: /\/wire\/paths\.ts$/ }, () => ({ contents: withoutTable, loader: 'ts' }));
      onLoad({ filter: /\/src\/contract\/client\/.*\.ts$/ }, ({ path }) => {
        const contents = readFileSync(path, 'utf8').replaceAll(
          /(?<!function )\b((?:operation|pathOf|callOf|taggedCallOf|bytesCallOf|pagesOf)(?:<[^<>()]*>)?\((?:\s*connection,)?\s*)('(\w+)')?/g,
          (_, before, _literal, id) => {
            if (!addresses.has(id))
              throw new Error(`${path} has a call ${before} without the id of an operation.`);
            return before + addresses.get(id);
          },
        );
        return { contents, loader: 'ts' };
      });
    },
  };
}

/** Writes the declarations of the client, with the types of the API from its schemas. */
async function writeDeclarations(root, folder) {
  const emitted = join(folder, 'emitted');
  const tsc = join(root, 'node_modules', '.bin', 'tsc');
  const failure = 'The declarations of the client cannot be written';
  await run(tsc, ['-p', join(root, 'src/contract/client'), '--outDir', emitted, '--pretty', 'false'], {
    cwd: root,
    failure,
  });
  const texts = new Map(
    readdirSync(join(emitted, 'src/contract/client'))
      .filter((name) => !INTERNAL.includes(name))
      .map((name) => [name, readFileSync(join(emitted, 'src/contract/client', name), 'utf8')]),
  );
  texts.set('paths.d.ts', readFileSync(join(emitted, 'src/contract/wire/paths.d.ts'), 'utf8'));
  const types = await typesOfTheApi(root, emitted, [...texts.values()].join('\n'));
  for (const [name, text] of texts) {
    const local = text
      .replaceAll(/'\.\.\/wire\/paths\.ts'/g, "'./paths.js'")
      .replaceAll(/(["'])(?:\.\.\/wire|#src\/(?:contract\/wire|base))\/[\w/-]+\.ts\1/g, "'./api.js'")
      .replaceAll(/(["'])(\.\/[\w-]+)\.ts\1/g, "'$2.js'");
    // Many programs are compiled with a library of TypeScript that is older than async disposal.
    const reference = name === 'index.d.ts' ? '/// <reference lib="esnext.disposable" />\n' : '';
    writeFileSync(join(folder, name), reference + local);
  }
  writeFileSync(join(folder, 'api.d.ts'), types);
  rmSync(emitted, { recursive: true });
}

/** Returns the declarations of all types of the API that `text`, the declarations of the client, imports. */
async function typesOfTheApi(root, emitted, text) {
  const modules = new Map();
  for (const [, names, shape, module = `contract/${shape}`] of text.matchAll(
    /import type \{([^}]*)\} from '(?:\.\.\/(wire\/[\w/-]+)|#src\/(base\/errors\/errors))\.ts'/g,
  ))
    for (const name of names.split(',')) modules.set(name.trim(), module);
  const load = (module) => import(pathToFileURL(join(root, 'dist/src', `${module}.js`)).href);
  const types = new SchemaTypes();
  const { OPERATIONS } = await load('contract/wire/operations/table');
  const { CATALOGUE } = await load('base/errors/errors');
  const named = schemasWithin(OPERATIONS);
  const declare = async (name, module) => {
    const exported = await load(module);
    const schema = exported[`${name}Schema`];
    if (schema !== undefined) return types.declare(name, types.of(schema));
    const declared = readFileSync(join(emitted, 'src', `${module}.d.ts`), 'utf8');
    const declaration = new RegExp(
      `^export (?:type ${name} = ([^;]*);|interface ${name} (\\{.*?^\\}))`,
      'ms',
    );
    const [, alias, members] = declaration.exec(declared) ?? [];
    const text = alias ?? members ?? '';
    const [, filtered] = /^Filters<typeof (\w+)>/.exec(text) ?? [];
    if (filtered !== undefined)
      return types.declare(
        name,
        `{\n${types.members(exported[filtered], { isPartial: true, leftOut: ['after', 'limit'] })}\n}`,
      );
    const [, described] = /^Wire<typeof (\w+)>/.exec(text) ?? [];
    const known = exported[described] ?? named.get(name);
    if (known !== undefined) return types.declare(name, types.of(known));
    if (text.startsWith('{')) return types.declare(name, text);
    throw new Error(`The type ${name} of ${module} has no exported schema.`);
  };
  for (const [name, module] of modules) {
    if (SPECIAL[name] === undefined) await declare(name, module);
  }
  const ids = new Set([...text.matchAll(/AnswerOf<"(\w+)"/g)].map(([, id]) => id));
  const answers = [...ids].map((id) => {
    const responses = Object.entries(OPERATIONS[id].responses).filter(
      ([, { schema }]) => schema !== undefined,
    );
    return `${id}: { ${responses.map(([status, { schema }]) => `${status}: ${types.of(schema)}`).join('; ')} };`;
  });
  const special = Object.entries(SPECIAL).map(([, text]) =>
    typeof text === 'function' ? text({ CATALOGUE, answers }) : text,
  );
  return `/** The types of the API, from its schemas. */\n${types.text}\n${special.join('\n')}\n`;
}

/** Returns the schemas with a name that `value` contains, by their names. */
function schemasWithin(value, found = new Map()) {
  if (typeof value !== 'object' || value === null) return found;
  if (typeof value.$id === 'string') found.set(value.$id, value);
  for (const member of Object.values(value)) schemasWithin(member, found);
  return found;
}

/** Types that do not come from one schema. */
const SPECIAL = {
  Page: `export interface Page<Item> {
  readonly items: readonly Item[];
  /** The \`after\` of the next page; null when there are no more items. */
  readonly nextCursor: string | null;
}`,
  NotebookFileFormat: "export type NotebookFileFormat = NotebookImport['format'];",
  StreamEvent: 'export type StreamEvent = NotebookStreamEvent | AgentStreamEvent;',
  ErrorCode: ({ CATALOGUE }) =>
    `/** The codes of errors. Later servers may have others. */\nexport type ErrorCode = ${Object.keys(
      CATALOGUE,
    )
      .map((code) => JSON.stringify(code))
      .join(' | ')};`,
  AnswerOf: ({ answers }) =>
    `interface Answers {\n${answers.join('\n')}\n}\nexport type AnswerOf<Id extends keyof Answers, Status extends keyof Answers[Id]> = Answers[Id][Status];`,
};

if (process.argv[1] === import.meta.filename) {
  await reporting(async () => {
    await setUpPrograms();
    const folder = await makeClientPackage();
    process.stdout.write(
      await run('npm', ['pack', folder], { cwd: process.cwd(), failure: 'npm pack failed' }),
    );
  });
}
