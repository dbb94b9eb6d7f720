import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import test from 'node:test';

/**
 * Room: the rooms that it may import, and after the bar those of which it may import types only. An import that is not listed is a
 * violation, and so is a line that no import needs. A room stands above those that it imports; `start` connects them.
 */
const ROOMS = table(`
  base       :
  contract   : base
  machines   : base | contract
  storage    : base | contract
  confined   : base | contract
  runtime    : base machines storage | contract
  cluster    : base confined runtime | contract
  workspace  : base storage confined | contract
  people     : base contract storage runtime
  datasource : base storage runtime | contract confined people
  notebook   : base contract machines storage confined runtime workspace | people
  agent      : base contract machines storage runtime
  mcp        : base contract agent | runtime
  jobs       : base machines storage runtime | contract notebook
  hooks      : base contract machines storage runtime datasource jobs
  http       : base contract storage runtime workspace | cluster people datasource notebook agent mcp jobs hooks
  operate    : base storage confined runtime datasource | contract people http
  faces      : base contract operate
  start      : base storage confined runtime cluster workspace people datasource notebook agent mcp jobs hooks http operate | contract
`);

/** The rooms within a room, from the ground up. Each may load code of those before it, and of none after it. */
const FLOORS = {
  base: 'os net errors install caller metrics async text time tracing json log config',
  contract: 'wire outputs client',
  runtime: 'homes events actors runs sessions',
  confined: 'processes nodes',
  cluster: 'peers worker primary',
  notebook: 'saved open sessions work requests pages',
  start: 'app process',
};

/** Code that browsers or programs of users load may import less than its room: only these places, in addition to its own. */
const PLACES: Readonly<Record<string, readonly string[]>> = {
  'src/contract/wire/paths.ts': [], // plain data, so that clients have it without a schema library
  'src/contract/wire/': ['src/base/caller/role.ts'],
  'src/contract/outputs/': ['src/base/text/cut-text.ts'],
  'src/contract/client/': ['src/contract/wire/paths.ts'],
  'src/faces/console/': [
    'src/contract/client/',
    'src/contract/outputs/',
    'src/contract/wire/paths.ts',
    'src/base/text/cut-text.ts',
    'src/base/text/duration-text.ts',
  ],
};

/** The files that may use a package or a power over the process. */
const RESERVED: Readonly<Record<string, RegExp>> = {
  lmdb: /^storage\//,
  '@msgpack/msgpack': /^storage\//,
  'uWebSockets.js': /^src\/http\//,
  xstate: /^(machines|src\/runtime\/actors)\/|^src\/(notebook\/open|agent)\/[\w-]+-driver\.ts$/,
  pino: /^src\/base\/log\/log\.ts$/,
  koffi: /^src\/base\/os\//,
  '@modelcontextprotocol/server': /^src\/mcp\//,
  commander: /^src\/faces\/cli\//,
  croner: /^src\/jobs\/schedule\.ts$/,
  preact: /^src\/faces\/console\//,
  '@preact/signals': /^src\/faces\/console\//,
  tweetnacl: /^src\/(datasource|http|people\/auth)\//,
  // To start the kernel host and confined processes; in the command line, to start the browser that prints a report or draws its charts,
  // and to ask git for the commit of a checkout.
  'node:child_process':
    /^src\/confined\/processes\/host\/zygote-process\.ts$|^src\/faces\/cli\/(run\/(pdf|cell-pictures|browser-pipe)|program|browser)\.ts$/,
  'node:cluster': /^src\/cluster\/primary\//,
  // to answer, to ask databases and to tell receivers of hooks through the gateway, to lead an installer to its index, and to warm the server up
  'node:http':
    /^src\/(http|datasource)\/|^src\/(hooks\/sender|workspace\/packages\/index-proxy|start\/process\/socket-client)\.ts$/,
};

test('each room imports only the rooms that its line lists', () => {
  const wrong = IMPORTS.flatMap(({ file, target, typeOnly, isOurs }) => {
    const [from, to] = [roomOf(file), roomOf(target)];
    if (!isOurs || from === to) return [];
    const { values = [], types = [] } = ROOMS[from] ?? {};
    const isListed = values.includes(to) || (typeOnly && types.includes(to));
    return isListed ? [] : [`${file} → ${target}${typeOnly ? ' (types)' : ''}`];
  });
  assert.deepEqual(wrong, []);
});

test('every room that the line of a room lists is imported by some file of that room', () => {
  const isMade = (from: string, to: string, ofTypes: boolean) =>
    IMPORTS.some(
      ({ file, target, typeOnly, isOurs }) =>
        isOurs && roomOf(file) === from && roomOf(target) === to && (ofTypes || !typeOnly),
    );
  const unused = Object.entries(ROOMS).flatMap(([from, { values, types }]) => [
    ...values.filter((to) => !isMade(from, to, false)).map((to) => `${from} → ${to}`),
    ...types.filter((to) => !isMade(from, to, true)).map((to) => `${from} → ${to} (types)`),
  ]);
  assert.deepEqual(unused, []);
});

test('every file stands in a room that has a line', () => {
  assert.deepEqual(
    FILES.filter((file) => ROOMS[roomOf(file)] === undefined),
    [],
  );
});

test('no room imports itself through other rooms, not even types', () => {
  const next = (room: string) => [...(ROOMS[room]?.values ?? []), ...(ROOMS[room]?.types ?? [])];
  const circular = Object.keys(ROOMS).filter((room) => next(room).some((to) => reaches(to, room, next)));
  assert.deepEqual(circular, []);
});

test('a folder of a room loads only code of lower folders of the room', () => {
  const wrong = Object.entries(FLOORS).flatMap(([room, line]) => {
    const inner = line.split(' ').map((name) => `src/${room}/${name}/`);
    const floorOf = (path: string) => inner.findIndex((folder) => path.startsWith(folder));
    return IMPORTS.filter(({ typeOnly }) => !typeOnly)
      .filter(({ file, target }) => floorOf(target) > floorOf(file) && floorOf(file) >= 0)
      .map(({ file, target }) => `${file} → ${target}`);
  });
  assert.deepEqual(wrong, []);
});

test('code that browsers and programs of users load imports only the rooms that its place allows', () => {
  const wrong = Object.entries(PLACES).flatMap(([place, allowed]) =>
    IMPORTS.filter(({ file, isOurs, typeOnly }) => isOurs && !typeOnly && file.startsWith(place))
      .filter(({ target }) => ![place, ...allowed].some((start) => target.startsWith(start)))
      .map(({ file, target }) => `${file} → ${target}`),
  );
  assert.deepEqual(wrong, []);
});

test('packages and abilities that belong to one place are used only in that place', () => {
  const wrong = IMPORTS.filter(({ file, target }) => RESERVED[target]?.test(file) === false);
  assert.deepEqual(
    wrong.map(({ file, target }) => `${file} → ${target}`),
    [],
  );
});

test('the web server is loaded by one file and checked by the doctor, and other files import only its types', () => {
  const importing = IMPORTS.filter(({ target, typeOnly }) => target === 'uWebSockets.js' && !typeOnly);
  assert.deepEqual([...new Set(importing.map(({ file }) => file))], ['src/http/uws.ts']); // the type of the whole module
  const loading = FILES.filter((file) => /\brequireUws\(copy\)/.test(codeOf(file)));
  assert.deepEqual(loading, ['src/http/uws.ts', 'src/operate/doctor/runtime.ts']);
});

test('only the configuration reads the environment, except for inherited variables of kernels, the address for notices and a limit of the web server', () => {
  const reading = FILES.filter((file) => /\bprocess\.env\b/.test(codeOf(file)));
  assert.deepEqual(
    reading.filter(
      (file) =>
        !/^src\/(base\/(config\/|os\/service-notice\.ts)|confined\/processes\/host\/kernel-host\.ts|http\/uws\.ts)/.test(
          file,
        ),
    ),
    [],
  );
});

test('only main and the command line end the process, and only the command line prints', () => {
  const ending = FILES.filter((file) => /\bprocess\.(exit|abort)\b/.test(codeOf(file)));
  assert.deepEqual(
    ending.filter((file) => !/^src\/(start\/(main|node-main)\.ts|faces\/cli\/)/.test(file)),
    [],
  );
  const printing = FILES.filter((file) =>
    /(^|[^.\w])console\.(log|error|warn|info|debug)\(/m.test(codeOf(file)),
  );
  assert.deepEqual(
    printing.filter((file) => !file.startsWith('src/faces/cli/')),
    [],
  );
});

test('no file imports itself through other files, not even types', () => {
  const graph = new Map<string, string[]>();
  for (const { file, target, isOurs } of IMPORTS) {
    if (isOurs) graph.set(file, [...(graph.get(file) ?? []), target]);
  }
  const circular = FILES.filter((file) =>
    (graph.get(file) ?? []).some((next) => reaches(next, file, (at) => graph.get(at) ?? [])),
  );
  assert.deepEqual(circular, []);
});

test('no file of the composition imports more than thirty others', () => {
  const imports = new Map<string, Set<string>>();
  for (const { file, target, isOurs } of IMPORTS)
    if (isOurs && roomOf(file) === 'start') imports.set(file, (imports.get(file) ?? new Set()).add(target));
  const large = [...imports].filter(([, targets]) => targets.size > 30);
  assert.deepEqual(
    large.map(([file, { size }]) => `${file}: ${size}`),
    [],
  );
});

/** Modules that tests replace by the import map of package.json, so every import has to go through it. */
const REPLACED = ['src/base/fault-points.ts', 'storage/migrations.ts'];

test('every import exists; a room reaches its own files by relative paths, and others through the import map', () => {
  const wrong = IMPORTS.filter(({ file, target, spelled, isOurs }) => {
    const isWithin = roomOf(target) === roomOf(file) && !REPLACED.includes(target);
    return isOurs && (!FILES.includes(target) || spelled.startsWith('#') === isWithin);
  });
  assert.deepEqual(
    wrong.map(({ file, spelled }) => `${file} → ${spelled}`),
    [],
  );
});

/** Says what the package `troupe-client` exports, under the name that its users' tools expect. */
const PACKAGE_ENTRY = 'src/contract/client/index.ts';

test('no file only re-exports, except for the entry of a package', () => {
  const barrels = FILES.filter((file) => {
    if (file === PACKAGE_ENTRY) return false;
    const code = codeOf(file);
    return (
      /^export (\*|(type )?\{[^}]*\}) from /m.test(code) &&
      !/^(export )?(async )?(const|function|class|interface|type \w)/m.test(code)
    );
  });
  assert.deepEqual(barrels, []);
});

test('files are named for the thing that they own', () => {
  const vague = /(^|\/|-)(utils?|helpers?|common|manager|service|base|impl|misc|types|index)\.tsx?$/;
  const named = FILES.filter((file) => vague.test(file) && file !== PACKAGE_ENTRY);
  assert.deepEqual(named, []);
  assert.deepEqual(
    FILES.filter((file) => !/^[a-z0-9/.-]+\.tsx?$/.test(file)),
    [],
  );
});

test('no file has more than seven hundred lines', (t) => {
  const sizes = FILES.map((file) => ({ file, lines: readFileSync(file, 'utf8').split('\n').length - 1 }));
  sizes.sort((a, b) => b.lines - a.lines);
  t.diagnostic(`median ${sizes[Math.floor(sizes.length / 2)]?.lines} lines of ${sizes.length} files`);
  for (const { file, lines } of sizes.filter(({ lines }) => lines > 500)) t.diagnostic(`${lines} ${file}`);
  assert.deepEqual(
    sizes.filter(({ lines }) => lines > 700),
    [],
  );
});

interface Room {
  readonly values: readonly string[];
  readonly types: readonly string[];
}

interface Import {
  readonly file: string;
  /** A path of ours, or the name of a package. */
  readonly target: string;
  readonly spelled: string;
  readonly typeOnly: boolean;
  readonly isOurs: boolean;
}

const FILES: readonly string[] = ['src', 'machines', 'storage'].flatMap((top) =>
  readdirSync(top, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => join(top, name))
    .sort(),
);
const IMPORTS: readonly Import[] = FILES.flatMap(importsOf);

function importsOf(file: string): Import[] {
  const found = codeOf(file).matchAll(
    /^(import|export)\s+(type\s)?([^'";]*?\sfrom\s+)?'([^']+)'|\bimport\('([^']+)'\)/gm,
  );
  // esbuild finds style sheets by itself.
  const modules = [...found].filter(([, , , , from]) => from?.endsWith('.css') !== true);
  return modules.map(([, , type, names, from, dynamic]) => {
    const spelled = from ?? dynamic ?? '';
    const isOurs = /^[.#]/.test(spelled);
    const target = spelled.startsWith('#') ? spelled.slice(1) : normalize(join(dirname(file), spelled));
    // `import { type A, type B }` loads the module nevertheless, unless all of the names are types.
    const listed =
      names
        ?.match(/\{([^}]*)\}/)?.[1]
        ?.split(',')
        .map((name) => name.trim())
        .filter(Boolean) ?? [];
    const typeOnly =
      type !== undefined || (listed.length > 0 && listed.every((name) => name.startsWith('type ')));
    return { file, target: isOurs ? target : spelled, spelled, typeOnly, isOurs };
  });
}

/** Returns the source without comments, so that names in comments are not taken for code. */
function codeOf(file: string): string {
  return readFileSync(file, 'utf8')
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/(^|\s)\/\/.*$/gm, '$1');
}

function roomOf(file: string): string {
  const [top, room, ...others] = file.split('/');
  return top === 'src' && others.length > 0 ? room! : (top ?? file);
}

/** Reads the lines of `ROOMS`. */
function table(lines: string): Readonly<Record<string, Room>> {
  const words = (text = '') => text.split(' ').filter(Boolean);
  return Object.fromEntries(
    lines
      .trim()
      .split('\n')
      .map((line): [string, Room] => {
        const [room = '', imports = ''] = line.split(':');
        const [values, types] = imports.split('|');
        return [room.trim(), { values: words(values), types: words(types) }];
      }),
  );
}

function reaches(from: string, to: string, next: (at: string) => readonly string[]): boolean {
  const seen = new Set<string>();
  const open = [from];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (at === to) return true;
    if (seen.has(at)) continue;
    seen.add(at);
    open.push(...next(at));
  }
  return false;
}
