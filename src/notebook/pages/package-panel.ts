/** The panel for packages of marimo's page. It shows and changes the packages that all notebooks of the workspace have. */
import { setTimeout as wait } from 'node:timers/promises';
import { AppError } from '#src/base/errors/errors.ts';
import { asRecord, ShapeError, textUpTo } from '#src/confined/processes/json-shape.ts';
import type { WorkspacePackages } from '#src/workspace/packages/workspace-packages.ts';
import { outcomeOf, type PanelCall, type PanelOperation } from './panel.ts';

/** The limits of `POST /packages`. */
const MAX_REQUIREMENTS = 50;
const MAX_REQUIREMENT_CHARS = 300;
const asPackage = textUpTo(MAX_REQUIREMENT_CHARS);
/** Reads the line that a person has written, with room for blanks. */
const asRequirements = textUpTo(2 * MAX_REQUIREMENTS * MAX_REQUIREMENT_CHARS);
/** How long a page waits for an installation at most. Proxies end a request that is silent for a minute. */
const WAIT_MS = 50_000;

interface ShownPackage {
  readonly name: string;
  readonly version: string;
}

type Operation = PanelOperation<WorkspacePackages>;

/** The operations of the panel, by their path. */
export const PACKAGE_PANEL: ReadonlyMap<string, Operation> = new Map<string, Operation>([
  [
    'api/packages/list',
    {
      method: 'GET',
      access: 'view',
      handle: async (packages, { workspaceId }) => ({ packages: await packages.installed(workspaceId) }),
    },
  ],
  [
    'api/packages/tree',
    {
      method: 'GET',
      access: 'view',
      async handle(packages, { workspaceId }) {
        const installed = await packages.installed(workspaceId);
        const { items } = packages.list(workspaceId);
        const added = installed.filter((one) => items.some(({ name }) => name === one.name));
        return {
          tree: { name: '<root>', version: null, tags: [], dependencies: added.map(leaf) },
          context: { kind: 'package-manager', name: 'Troupe, for all notebooks of the workspace' },
        };
      },
    },
  ],
  ['api/packages/add', { method: 'POST', access: 'edit', handle: add }],
  ['api/packages/install', { method: 'POST', access: 'edit', handle: install }],
  [
    'api/packages/installation',
    {
      method: 'GET',
      access: 'view',
      handle: (packages, { workspaceId }) => ({ installation: packages.list(workspaceId).installation }),
    },
  ],
  ['api/packages/remove', { method: 'POST', access: 'edit', handle: remove }],
  [
    'api/packages/sandbox',
    {
      method: 'POST',
      access: 'view',
      handle: () => ({ backend: null, manifest: null, filename: null }),
    },
  ],
]);

function leaf({ name, version }: ShownPackage) {
  return { name, version, tags: [], dependencies: [] };
}

function add(packages: WorkspacePackages, call: PanelCall, body: Readonly<Record<string, unknown>>) {
  const requirements = splitRequirements(asRequirements(body.package, 'package'));
  return outcomeOf(() => addAll(packages, call, requirements));
}

/** Installs the packages that the page has found missing. The answer says whether an installation is under way, so that the page waits. */
function install(
  packages: WorkspacePackages,
  call: PanelCall,
  body: Readonly<Record<string, unknown>>,
): Promise<unknown> {
  const requirements = missingRequirements(body);
  return outcomeOf(async () => {
    try {
      return await addAll(packages, call, requirements);
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'installation_in_progress') throw error;
      return { success: false, isInstalling: true, requirements };
    }
  });
}

/** Resolves once the packages are there. Rejects as `WorkspacePackages.add` does, and when it takes too long. */
async function addAll(packages: WorkspacePackages, call: PanelCall, requirements: readonly string[]) {
  const adding = packages.add(call, requirements, (changes) => call.note(...changes));
  adding.catch(() => {}); // the panel shows the packages once they are there
  const { openSessions } = await within(adding);
  return { restartRequired: openSessions.includes(call.notebookId) };
}

function remove(packages: WorkspacePackages, call: PanelCall, body: Readonly<Record<string, unknown>>) {
  const name = asPackage(body.package, 'package');
  return outcomeOf(async () => {
    if (!packages.has(call.workspaceId, name))
      throw new AppError(
        'not_found',
        `Nobody has added ${name} to the workspace: another package needs it, or the server brings it.`,
      );
    packages.remove(call.workspaceId, name);
    call.note({ action: 'package.remove', target: name, outcome: 'done' });
    const openSessions = await packages.openSessions(call.workspaceId);
    return { restartRequired: openSessions.includes(call.notebookId) };
  });
}

/** Resolves with the result of an installation. Rejects with `installation_in_progress` when it takes too long. */
async function within<T>(adding: Promise<T>): Promise<T> {
  const timer = new AbortController();
  const over = wait(WAIT_MS, undefined, { signal: timer.signal, ref: false });
  try {
    const result = await Promise.race([adding, over.catch(() => undefined)]);
    if (result !== undefined) return result;
    throw new AppError(
      'installation_in_progress',
      'The installation continues. Read the packages again in a while.',
    );
  } finally {
    timer.abort();
  }
}

/** Reads the missing packages of a page: their names, with the version of each or an empty text. */
function missingRequirements({ versions, source }: Readonly<Record<string, unknown>>): readonly string[] {
  if (source !== undefined && source !== 'kernel')
    throw new ShapeError('source is not kernel: packages of the server itself are not installed from a page');
  const entries = Object.entries(asRecord(versions, 'versions'));
  requireFew(
    'versions',
    entries.map(([name]) => name),
  );
  const requirements = entries.map(([name, sent]) => {
    const version = asPackage(sent, `versions.${name}`);
    if (!/^[\w.!+*-]*$/.test(version))
      throw new ShapeError(`versions has a version that is none: ${version}`);
    return version === '' || version === 'latest' ? name : `${name}==${version}`;
  });
  requireFew('versions', requirements);
  return requirements;
}

/**
 * Returns the requirements that a person has written into one line, with white space between them. A line with a marker or an
 * address is one requirement.
 */
function splitRequirements(text: string): readonly string[] {
  const line = text.trim();
  if (/\p{Cc}/u.test(line)) throw new ShapeError('package has more than one line');
  const isOne = /[;@]/.test(line);
  // Runs of white space become one blank first, because a run before an operator that does not come would be tried from each of its
  // characters.
  const spaced = line.replace(/\s+/g, ' ');
  const requirements = isOne ? [line] : spaced.replace(/ ?([=<>!~]+|,|\[) ?| (?=\])/g, '$1').split(' ');
  requireFew('package', requirements);
  return requirements;
}

/** Throws `ShapeError` for no requirements, too many, or one that is too long. */
function requireFew(where: string, requirements: readonly string[]): void {
  if ((requirements[0] ?? '') === '') throw new ShapeError(`${where} is empty`);
  if (requirements.length > MAX_REQUIREMENTS)
    throw new ShapeError(`${where} names more than ${MAX_REQUIREMENTS} packages`);
  if (requirements.some(({ length }) => length > MAX_REQUIREMENT_CHARS))
    throw new ShapeError(`a requirement has more than ${MAX_REQUIREMENT_CHARS} characters`);
}
