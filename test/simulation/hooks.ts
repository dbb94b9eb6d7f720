/**
 * Module hooks of Node.js for a simulated process. They apply to modules of the product only.
 *
 * - What such a module imports of the system is a stand-in (`stand-ins/`).
 * - An `import()` stops the world until the module is there, because loading takes real time.
 * - The state that a module keeps in variables of its own begins anew with each life of a server, as in a new process.
 * - Several processes that live at once have modules of their own: the query of a module's URL names their graph (`GRAPH`), and what
 *   such a module imports of the product is of the same graph.
 * - Handlers of signals are those of a simulated process.
 * - The edits of a mutant are made. An edit that fits nowhere, or in several places, is an error.
 *
 * They run in a thread of their own, so they share nothing with the world.
 */
import type { InitializeHook, LoadHook, ResolveHook } from 'node:module';

/** One edit of the built text of a module. */
export interface ModuleEdit {
  /** The URL of the built module. */
  readonly url: string;
  readonly from: string;
  readonly to: string;
}

export interface HookData {
  /** The URL of the folder with everything that is built. */
  readonly root: string;
  /** The URLs of folders below it that are no part of the product. */
  readonly others: readonly string[];
  /** The URLs of the stand-ins, by what they stand for: the name of a module as it is imported, or the URL of a module of the product. */
  readonly standIns: Readonly<Record<string, string>>;
  readonly edits: readonly ModuleEdit[];
}

/** The parameter of a module's URL that names the process to whose graph the module belongs. */
export const GRAPH = 'process';

let data: HookData = { root: '', others: [], standIns: {}, edits: [] };

export const initialize: InitializeHook<HookData> = (given) => {
  data = given;
};

function isProduct(url: string | undefined): boolean {
  return url?.startsWith(data.root) === true && !data.others.some((other) => url.startsWith(other));
}

export const resolve: ResolveHook = async (specifier, context, next) => {
  const { parentURL } = context;
  if (parentURL === undefined || !isProduct(parentURL)) return next(specifier, context);
  const resolved = data.standIns[specifier] === undefined ? await next(specifier, context) : undefined;
  const standIn = data.standIns[specifier] ?? data.standIns[resolved?.url ?? ''];
  if (standIn !== undefined) return { url: standIn, format: 'module', shortCircuit: true };
  const { search } = new URL(parentURL);
  return resolved === undefined || search === '' || !isProduct(resolved.url)
    ? resolved!
    : { ...resolved, url: `${resolved.url}${search}` };
};

export const load: LoadHook = async (url, context, next) => {
  const loaded = await next(url, context);
  if (!isProduct(url) || loaded.source === undefined || loaded.source === null) return loaded;
  const text = typeof loaded.source === 'string' ? loaded.source : new TextDecoder().decode(loaded.source);
  return { ...loaded, source: prepared(url, text, data.edits) };
};

/** Returns the text of a module of the product as a simulation loads it. */
export function prepared(url: string, text: string, edits: readonly ModuleEdit[]): string {
  const [file = url, query] = url.split('?');
  const own = edits.filter((edit) => edit.url === file);
  const graph = new URLSearchParams(query).get(GRAPH) ?? '';
  const edited = withStoppedImports(own.reduce(withEdit, text));
  return withRestarts(
    PROGRAMS.test(file) ? edited.replace(HANDLER, 'globalThis.onSignalOfProcess(') : edited,
    graph,
  );
}

/** The modules that handle signals, and their calls that register a handler with the process. */
const PROGRAMS = /\/src\/start\/process\/[^/]+$/;
const HANDLER = /\bprocess\.on\(/g;

/** Returns the text with one edit made. Throws when the edit fits nowhere, or in several places. */
export function withEdit(text: string, { url, from, to }: ModuleEdit): string {
  const places = text.split(from).length - 1;
  if (places !== 1) throw new Error(`The edit of ${url} fits in ${places} places: ${from}`);
  return text.replace(from, () => to);
}

/** Dynamic imports, and not methods of this name. Their argument may contain one level of parentheses. */
const DYNAMIC_IMPORT = /(?<![.#]|async )\bimport\(((?:[^()]|\([^()]*\))*)\)/g;

function withStoppedImports(text: string): string {
  return text.replace(DYNAMIC_IMPORT, 'globalThis.stopWorldFor(() => import($1))');
}

/** Variables of a module, which the compiler writes without indentation and in one line. */
const VARIABLE = /^let (\w+)(?: = (.+))?;$/gm;
/** Collections that are empty at first. The names of constants begin with a capital letter. */
const COLLECTION = /^const ([a-z]\w*) = new (?:Map|Set)\(\);$/gm;
const LIST = /^const ([a-z]\w*) = \[\];$/gm;
const BYTES = /^const ([a-z]\w*) = (?:new Uint8Array|Buffer\.alloc)\(.+\);$/gm;

/** Adds what a new process would do: variables get their first values, and collections are empty. */
function withRestarts(text: string, graph: string): string {
  const steps = [
    ...[...text.matchAll(BYTES)].map(([, name]) => `${name}.fill(0);`),
    ...[...text.matchAll(COLLECTION)].map(([, name]) => `${name}.clear();`),
    ...[...text.matchAll(LIST)].map(([, name]) => `${name}.length = 0;`),
    ...[...text.matchAll(VARIABLE)].map(([, name, value]) => `${name} = ${value ?? 'undefined'};`),
  ];
  return steps.length === 0
    ? text
    : `${text}\nglobalThis.atEachLife(${JSON.stringify(graph)}, () => { ${steps.join(' ')} });\n`;
}
