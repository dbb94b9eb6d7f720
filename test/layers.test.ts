import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import test from 'node:test';

/**
 * Folder → folders it may import. An import that is not listed is a violation. `types` may be
 * imported only as types, so that none of their code is loaded. A file with an entry of its own is
 * not part of its folder. `src/start/app.ts` and `src/start/app/` connect all of them; `src/start/main.ts` starts the
 * result.
 */
interface Layer {
  readonly values: readonly string[];
  readonly types?: readonly string[];
}
const LAYERS: Readonly<Record<string, Layer>> = {
  'src/base': { values: [] },
  // Imports nothing, so that browsers have it as well.
  'src/base/text/duration-text.ts': { values: [] },
  // Calls of the operating system that Node.js lacks. Only this folder uses koffi.
  'src/base/os': { values: [] },
  machines: { values: [], types: ['src/base'] },
  // Every shape that crosses the API, as a schema. Its types may be imported everywhere, so that no shape is declared twice.
  'src/contract/wire': { values: ['src/base', 'src/contract/wire/paths.ts'] },
  // Plain data, so that clients have it without a schema library.
  'src/contract/wire/paths.ts': { values: [] },
  // The choice of the representation in which an output is shown, for the server, the command line
  // and browsers.
  'src/contract/outputs': { values: [] },
  storage: { values: ['src/base/os', 'src/base'] },
  // Metrics of the server. Every other folder may take them as a parameter.
  'src/base/metrics': { values: [] },
  // Spans of the server's work. Every other folder may take a tracer as a parameter.
  'src/base/tracing': { values: ['src/base'] },
  'src/runtime/events': { values: ['src/base'] },
  // The processes of a server: which worker is the home of a notebook, requests between workers, and the watchdog. Other folders
  // get the cluster as a parameter, so they import its types only.
  'src/cluster': { values: ['src/base/os', 'src/base', 'src/confined'], types: ['src/runtime/events'] },
  'src/people/auth': { values: ['src/base', 'src/cluster', 'src/contract/wire', 'storage'] },
  'src/people/audit': { values: ['src/base', 'storage'] },
  'src/runtime/actors': {
    values: ['src/base', 'src/base/metrics', 'storage'],
    types: ['src/cluster', 'src/runtime/events'],
  },
  'src/runtime/runs': {
    values: ['src/base', 'src/base/metrics', 'src/base/tracing', 'machines', 'storage'],
    types: ['src/runtime/actors', 'src/cluster'],
  },
  'src/runtime/sessions': {
    values: ['src/base', 'machines', 'storage'],
    types: ['src/runtime/actors', 'src/runtime/events', 'src/runtime/runs'],
  },
  'src/confined': { values: ['src/base/os', 'src/base'], types: ['src/base/metrics'] },
  // Kernels on other machines. `nodes` is above the kernel host, and nothing else knows of it.
  'src/confined/nodes': { values: ['src/base/os', 'src/base', 'src/confined'] },
  'src/notebook': {
    values: [
      'src/base',
      'src/base/tracing',
      'machines',
      'storage',
      'src/runtime/runs',
      'src/runtime/sessions',
      'src/contract/outputs',
    ],
    types: ['src/runtime/actors', 'src/runtime/events', 'src/confined'],
  },
  // The page of a notebook in a browser: marimo's front end on a live session.
  'src/notebook/pages': {
    values: [
      'src/base',
      'src/base/text/duration-text.ts',
      'src/confined',
      'src/runtime/events',
      'src/workspace/files',
      'src/notebook',
      'src/contract/wire',
    ],
    types: ['machines', 'src/runtime/actors', 'src/people/audit', 'src/workspace/packages', 'storage'],
  },
  'src/agent': {
    values: [
      'src/base',
      'src/base/tracing',
      'machines',
      'storage',
      'src/runtime/sessions',
      'src/contract/outputs',
    ],
    types: ['src/runtime/actors', 'src/runtime/events', 'src/base/metrics', 'src/runtime/runs'],
  },
  'src/workspace/packages': { values: ['src/base', 'src/confined', 'storage'] },
  'src/workspace/files': { values: ['src/base'] },
  'src/datasource': {
    values: ['src/base', 'src/cluster', 'storage'],
    types: ['src/people/audit', 'src/confined', 'src/base/metrics', 'src/base/tracing'],
  },
  'src/http': {
    values: [
      'src/base/os',
      'src/workspace/files',
      'src/base',
      'src/base/metrics',
      'src/base/tracing',
      'src/contract/wire',
      'src/contract/wire/paths.ts',
      'src/runtime/runs',
      'storage',
    ],
    types: [
      'src/cluster',
      'src/people/auth',
      'src/runtime/events',
      'src/runtime/actors',
      'src/people/audit',
      'src/runtime/sessions',
      'src/notebook',
      'src/agent',
      'src/datasource',
      'src/workspace/packages',
      'src/notebook/pages',
      'src/mcp',
    ],
  },
  // MCP in front of the API: its tools are those of agents, and its requests those of a client.
  'src/mcp': {
    values: [
      'src/base',
      'src/agent',
      'src/contract/client',
      'src/contract/outputs',
      'src/contract/wire/paths.ts',
    ],
    types: ['src/cluster', 'src/base/tracing'],
  },
  // Runs in browsers, and asks the server as any client does.
  'src/faces/console': {
    values: [
      'src/contract/client',
      'src/contract/outputs',
      'src/contract/wire/paths.ts',
      'src/base/text/duration-text.ts',
    ],
  },
  'src/base/config': { values: ['src/base/os', 'src/base'], types: ['src/base/config/config.ts'] },
  'src/base/config/config.ts': { values: ['src/base/config', 'src/base'] },
  'src/contract/client': { values: ['src/contract/wire/paths.ts'], types: ['src/base'] },
  // Backups, their restoration and verification.
  'src/operate/maintenance': { values: ['src/base', 'src/datasource', 'storage'] },
  // Checks a machine in the way in which the server would use it.
  'src/operate/doctor': {
    values: ['src/base/os', 'src/base', 'src/confined', 'src/datasource', 'storage'],
    types: ['src/base/config/config.ts'],
  },
  // `troupe doctor` is `src/operate/doctor`, loaded when it is asked for.
  'src/faces/cli': {
    values: [
      'src/base',
      'src/contract/client',
      'src/contract/outputs',
      'src/base/config',
      'src/base/config/config.ts',
      'src/operate/doctor',
      'src/operate/maintenance',
    ],
  },
  'src/start/docs.ts': { values: ['src/base', 'src/base/config'] },
  // The operators' views of the whole server: state, kernels, metrics, readiness; gathered from all workers.
  'src/operate/operators': {
    values: ['src/base', 'src/runtime/actors', 'src/base/metrics'],
    types: [
      ...[
        'src/cluster',
        'src/base/config/config.ts',
        'src/runtime/events',
        'src/http',
        'src/confined',
        'src/operate/maintenance',
      ],
      'storage',
    ],
  },
  // Deletes records that are older than the settings allow.
  'src/operate/retention': {
    values: ['src/base', 'src/runtime/runs', 'storage'],
    types: ['src/people/audit', 'src/base/config/config.ts'],
  },
  'src/start/app.ts': {
    values: [
      ...[
        'src/start/app',
        'src/operate/operators',
        'src/operate/retention',
        'storage',
        'src/base',
        'src/people/audit',
        'src/people/auth',
        'src/runtime/actors',
      ],
      ...['src/runtime/sessions', 'src/agent', 'src/datasource', 'src/http', 'src/cluster', 'src/mcp'],
    ],
  },
  'src/start/app': {
    values: [
      'src/operate/operators',
      'src/operate/retention',
      'src/base/config',
      'src/base/os',
      'src/people/audit',
      ...[
        'storage',
        'src/base',
        'src/runtime/actors',
        'src/runtime/events',
        'src/workspace/files',
        'src/confined',
        'src/base/metrics',
      ],
      ...[
        'src/base/tracing',
        'src/notebook',
        'src/workspace/packages',
        'src/datasource',
        'src/http',
        'src/operate/maintenance',
      ],
      ...['src/cluster', 'src/people/auth', 'src/runtime/runs', 'src/notebook/pages', 'src/confined/nodes'],
    ],
    types: ['src/runtime/sessions', 'src/agent', 'src/mcp', 'src/base/config/config.ts'],
  },
  // From the settings to a serving process, and to its end.
  'src/start/process': {
    values: [
      ...[
        'src/start/app',
        'src/start/app.ts',
        'src/people/auth',
        'src/cluster',
        'src/base',
        'src/datasource',
        'src/confined',
      ],
      ...[
        'src/base/os',
        'src/confined/nodes',
        'src/operate/operators',
        'src/base/config/config.ts',
        'src/base/metrics',
        'storage',
      ],
    ],
  },
  'src/start/node-main.ts': { values: ['src/base/config/config.ts', 'src/base', 'src/start/process'] },
  'src/start/main.ts': {
    values: ['src/cluster', 'src/base/config/config.ts', 'src/base', 'src/start/process'],
  },
};

/** The files that may use a package or a power over the process. */
const RESERVED: Readonly<Record<string, RegExp>> = {
  lmdb: /^storage\//,
  '@msgpack/msgpack': /^storage\//,
  'uWebSockets.js': /^src\/http\//,
  xstate: /^(machines|src\/actors)\/|^src\/(notebook|agent)\/[\w-]+-driver\.ts$/,
  pino: /^src\/core\/log\.ts$/,
  koffi: /^src\/os\//,
  '@modelcontextprotocol/server': /^src\/mcp\//,
  commander: /^src\/cli\//,
  preact: /^src\/console\//,
  '@preact/signals': /^src\/console\//,
  tweetnacl: /^src\/(datasource|http|auth)\//,
  // To start the kernel host and confined processes; in the command line, to start the browser that prints a report or draws its charts,
  // and to ask git for the commit of a checkout.
  'node:child_process':
    /^src\/confined\/host\/zygote-process\.ts$|^src\/cli\/(run\/(pdf|cell-pictures|browser-pipe)|program|browser)\.ts$/,
  'node:cluster': /^src\/cluster\/primary\//,
  // to answer, to ask databases through the gateway, to lead an installer to its index, and to warm the server up
  'node:http': /^src\/(http|datasource)\/|^src\/(packages\/index-proxy|process\/socket-client)\.ts$/,
};

/** The one function that cuts text, which imports nothing. Every folder uses it, also those for browsers. */
const CUTTING = 'src/base/text/cut-text.ts';

test('no folder imports against the layering', () => {
  const wrong = IMPORTS.flatMap(({ file, target, typeOnly, isOurs }) => {
    const [from, to] = [layerOf(file), layerOf(target)];
    if (!isOurs || from === to || target === CUTTING) return [];
    const { values, types = [] } = LAYERS[from] ?? { values: [] };
    const allowed =
      values.includes(to) || (typeOnly && (to.startsWith('src/contract/wire') || types.includes(to)));
    return allowed ? [] : [`${file} → ${target}${typeOnly ? ' (types)' : ''}`];
  });
  assert.deepEqual(wrong, []);
});

test('every import that the table of layers permits is made by some file', () => {
  const isUsed = (from: string, to: string, asTypes: boolean) =>
    IMPORTS.some(
      ({ file, target, typeOnly, isOurs }) =>
        isOurs && layerOf(file) === from && layerOf(target) === to && (asTypes || !typeOnly),
    );
  const unused = Object.entries(LAYERS).flatMap(([from, { values, types = [] }]) => [
    ...values.filter((to) => !isUsed(from, to, false)).map((to) => `${from} → ${to}`),
    ...types.filter((to) => !isUsed(from, to, true)).map((to) => `${from} → ${to} (types)`),
  ]);
  assert.deepEqual(unused, []);
});

test('every folder is listed in the layering', () => {
  const missing = new Set(FILES.map(layerOf).filter((layer) => LAYERS[layer] === undefined));
  assert.deepEqual([...missing], []);
});

test('no two folders may import each other', () => {
  const values = (layer: string) => LAYERS[layer]?.values ?? [];
  const mutual = Object.keys(LAYERS).flatMap((from) =>
    values(from)
      .filter((to) => reaches(to, from, values))
      .map((to) => `${from} ⇄ ${to}`),
  );
  assert.deepEqual(mutual, []);
});

test('files that belong to one folder are used by that folder only', () => {
  const wrong = IMPORTS.filter(({ file, target }) => RESERVED[target]?.test(file) === false);
  assert.deepEqual(
    wrong.map(({ file, target }) => `${file} → ${target}`),
    [],
  );
});

test('the web server is loaded by one file and checked by the doctor, and the others know only its types', () => {
  const importing = IMPORTS.filter(({ target, typeOnly }) => target === 'uWebSockets.js' && !typeOnly);
  assert.deepEqual([...new Set(importing.map(({ file }) => file))], ['src/http/uws.ts']); // the type of the whole module
  const loading = FILES.filter((file) => /\brequireUws\(copy\)/.test(codeOf(file)));
  assert.deepEqual(loading, ['src/operate/doctor/runtime.ts', 'src/http/uws.ts']);
});

test('only the configuration reads the environment, except for inherited variables of kernels, the address for notices and a limit of the web server', () => {
  const reading = FILES.filter((file) => /\bprocess\.env\b/.test(codeOf(file)));
  assert.deepEqual(
    reading.filter(
      (file) =>
        !/^src\/(config\.ts|config\/|confined\/host\/kernel-host\.ts|os\/service-notice\.ts|http\/uws\.ts)/.test(
          file,
        ),
    ),
    [],
  );
});

test('only main and the command line end the process, and only the command line prints', () => {
  const ending = FILES.filter((file) => /\bprocess\.(exit|abort)\b/.test(codeOf(file)));
  assert.deepEqual(
    ending.filter((file) => !/^src\/(main\.ts|node-main\.ts|cli\/)/.test(file)),
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

test('every import exists, and other folders are reached through the import map', () => {
  const wrong = IMPORTS.filter(({ file, target, spelled, isOurs }) => {
    const climbsOut = spelled.startsWith('..') && layerOf(target) !== layerOf(file);
    return isOurs && (climbsOut || !FILES.includes(target));
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

function layerOf(file: string): string {
  if (file in LAYERS) return file;
  const parts = file.split('/');
  if (parts[0] !== 'src') return parts[0] ?? file;
  return parts.length === 2 ? file : `src/${parts[1]}`;
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
