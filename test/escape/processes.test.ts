// tier: whole, because it attacks the confinement from many sides; as-this-user.test.ts stays in the gate
// runs alone: it starts many processes, which keep both processors busy
/** Compares every process below a busy server with the rights that its role may have. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type OpenNotebook, openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import type { Overrides } from '#test/support/server-fixture.ts';
import { startPackageIndex } from '#test/support/stand-ins/package-index.ts';
import { tinyGguf } from '#test/support/stand-ins/tiny-gguf.ts';
import { type AttackedServer, ORDINARY_UID, obstacle, startAttacked, type User } from './attacked-server.ts';
import { type ConfinedProcess, listProcesses, openingsOf } from './process-table.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
/** Whether that user can run llama.cpp, which `troupe models add-local` installs. */
function hasModel(user: User): boolean {
  const ids = user === 'this user' ? {} : { uid: ORDINARY_UID, gid: ORDINARY_UID };
  return spawnSync(join(ROOT, '.venv-local-model/bin/python'), ['-c', ''], { ...ids, cwd: '/' }).status === 0;
}

/** Leaves a file, a pipe and a listening socket open in the program that it starts. */
const LAUNCHER = `
import os, socket, sys
listener = socket.socket(); listener.bind(("127.0.0.1", 0)); listener.listen()
_, end = os.pipe()
for number, what in ((200, os.open("/etc/hostname", os.O_RDONLY)), (201, end), (202, listener.fileno())):
    os.dup2(what, number)
os.execvp(sys.argv[1], sys.argv[1:])
`;

const FROM_LAUNCHER = 200;

/** A parser that takes long, so that the test sees a conversion at work. */
const SLOW_PARSER = `
import ast, time
parse = ast.parse
def slow(source, *more, **named):
    if isinstance(source, str) and source.startswith("# slow"): time.sleep(20)
    return parse(source, *more, **named)
ast.parse = slow
`;

/** The targets that descriptors may have: one pattern for each of stdin, stdout and stderr, and one for all others. */
interface Allowed {
  /** Whether the process runs or parses content from users. */
  readonly isConfined: boolean;
  readonly stdio: readonly [RegExp, RegExp, RegExp];
  readonly others: RegExp;
  readonly most: number;
}

const [NULL, PIPE, SOCKET, CONNECTION] = [/^\/dev\/null$/, /^pipe:/, /^socket:/, /^(pipe|socket):/];
const OUTPUT = /^(\/dev\/null$|\/memfd:stderr|pipe:)/;
const ANY_STREAM = /^(\/dev\/null$|\/memfd:stderr|pipe:|socket:)/;
/** stderr is a file in memory until the process begins to work on a user's content. */
const UNTIL_WORK = /^(\/dev\/null$|\/memfd:stderr)/;
const BARE: Allowed = { isConfined: true, stdio: [NULL, NULL, UNTIL_WORK], others: SOCKET, most: 4 };
/** Both generations of the zygote; the second one loads libraries. */
const ZYGOTE: Allowed = {
  isConfined: false,
  stdio: [CONNECTION, CONNECTION, CONNECTION],
  others: /^(?!.*\/data\/)/,
  most: 40,
};
const ROLES: Readonly<Record<string, Allowed>> = {
  // A kernel host that is starting, or one of its processes that start other processes. These run
  // no code of users.
  python: {
    isConfined: false,
    // The guardian lets go of its streams just before it takes its name.
    stdio: [ANY_STREAM, ANY_STREAM, CONNECTION],
    // uv starts a Python, too, to ask it for its version.
    others: /^(?!.*\/data\/(?!packages\/\.workshop\/))/,
    most: 12,
  },
  guardian: { isConfined: false, stdio: [NULL, NULL, CONNECTION], others: /^(pipe:|\/proc\/)/, most: 5 },
  zygote: ZYGOTE,
  preload: ZYGOTE,
  // A process that waits to become a kernel, or is giving up its rights: it opens the folders from which its view of the disk is
  // built.
  starting: {
    isConfined: false,
    stdio: [ANY_STREAM, ANY_STREAM, ANY_STREAM],
    others: /^(?!.*\/data\/(store|claim))/,
    most: 40,
  },
  init: { isConfined: false, stdio: [NULL, NULL, UNTIL_WORK], others: PIPE, most: 4 },
  // It decides the calls of one kernel that change modes where there are no namespaces. It opens the file that a call names only
  // for the change.
  modes: {
    isConfined: false,
    stdio: [NULL, NULL, UNTIL_WORK],
    others: /^(pipe:|socket:|anon_inode:)/,
    most: 8,
  },
  // Descriptors that a kernel may have: its connection to the server, its own status, the priority
  // of its own session until that is lowered, and those of asyncio and marimo. While a cell runs,
  // marimo reads its printed text from pipes.
  kernel: {
    isConfined: true,
    stdio: [NULL, OUTPUT, OUTPUT],
    others: /^(socket:|pipe:|anon_inode:|\/dev\/null|\/proc\/\d+\/(autogroup|status)$)/,
    most: 24,
  },
  // The process that installs packages, and the uv that it starts: both are confined, and have a
  // connection to the server's proxy.
  install: {
    ...BARE,
    others: /^(pipe:|socket:|\/dev\/null$|.*\.dist-info(\/|$)|.*\/packages\/\.workshop\/|.*\/site-packages$)/,
    most: 12,
  },
  // It reads how many processors it may use, and its C library reads where the stack ends. While it starts, libraries are opened.
  uv: {
    ...BARE,
    stdio: [NULL, PIPE, PIPE],
    others:
      /^(socket:|pipe:|anon_inode:|\/dev\/null$|\/etc\/ssl\/certs\/|\/sys\/fs\/cgroup\/|\/proc\/\d+\/(cgroup|mountinfo|maps)$|.*\.so(\.\d+)*$|.*\/packages\/\.workshop\/)/,
    most: 64,
  },
  program: BARE,
  convert: BARE,
  syntax: BARE,
  'local model': {
    isConfined: true,
    stdio: [SOCKET, NULL, NULL],
    others: /^(socket:|anon_inode:|.*\/tiny\.gguf$)/,
    most: 24,
  },
  // An engine may have open its connection, the folder of the workspace, the database with its journal, and
  // the file from which DuckDB reads the limit of memory.
  engine: {
    isConfined: true,
    stdio: [NULL, NULL, UNTIL_WORK],
    others:
      /^(socket:|\/proc\/\d+\/cgroup$|.*\/files(\/numbers\.(sqlite|duckdb)[\w.-]*)?$|.*\/(etilqs_|\.tmp)[^/]*$)/,
    most: 24,
  },
  // A process that serves, as the server itself does where it is one process: it has the store and
  // its folder, the claim, and connections. It reads its own source map for the first error whose
  // stack it writes.
  worker: {
    isConfined: false,
    stdio: [NULL, ANY_STREAM, ANY_STREAM],
    others:
      /^(socket:|pipe:|anon_inode:|\/dev\/null$|.*\/data\/(claim|store(\/(data|lock)\.mdb)?)$|.*\/dist\/server\/[^/]+\.map$)/,
    most: 150,
  },
  // Counts memory where no control group does.
  watch: { isConfined: false, stdio: [NULL, NULL, CONNECTION], others: /^(socket:|\/proc\/)/, most: 8 },
};
const NEEDED = ['guardian', 'zygote', 'kernel', 'convert', 'syntax', 'engine', 'install'];

const MAKE_FILES = `import duckdb, sqlite3
sqlite3.connect("numbers.sqlite").execute("create table numbers (number)")
duckdb.connect("numbers.duckdb").close()`;
const SLOW_QUERY = 'with recursive r(n) as (select 1 union all select n + 1 from r) select count(*) from r';

type Client = Pick<AttackedServer, 'client'>;

/** Keeps every kind of process at work. */
async function makeBusy({ client }: Client, withModel: boolean): Promise<readonly OpenNotebook[]> {
  for (const kind of ['sqlite', 'duckdb'] as const) {
    await client.datasources.create({ slug: kind, connection: { kind, path: `numbers.${kind}` } });
  }
  const made = await openNotebook({ client }, { a: MAKE_FILES });
  assert.equal((await made.run(['a'])).status, 'completed');
  await made.close();
  const asking = (slug: string) =>
    `from troupe import datasource\ndatasource("${slug}").execute("${SLOW_QUERY}")`;
  const notebooks = await Promise.all([
    openNotebook({ client }, { a: 'import time\nwhile True: time.sleep(0.05)' }),
    openNotebook({ client }, { a: asking('sqlite') }, { datasourceSlugs: ['sqlite'] }),
    openNotebook({ client }, { a: asking('duckdb') }, { datasourceSlugs: ['duckdb'] }),
  ]);
  await work({ client }, notebooks, withModel);
  return notebooks;
}

/** Starts the cells again, and asks the model. */
async function work(
  { client }: Client,
  notebooks: readonly OpenNotebook[],
  withModel: boolean,
): Promise<void> {
  for (const notebook of notebooks) {
    await eventually('the session is ready', async () => (await notebook.record()).status === 'ready');
    await notebook.submit(['a']);
  }
  if (withModel) await client.models.test('local/tiny');
}

/**
 * Starts the work again until its process was seen, because some processes end within milliseconds.
 * Keeps in `answers` the number of requests for a role and the last answer.
 */
async function askAgain(
  { client }: Client,
  missing: ReadonlySet<string>,
  answers: Map<string, string>,
): Promise<void> {
  const asks: Readonly<Record<string, () => Promise<unknown>>> = {
    convert: () => client.notebooks.import({ format: 'py', content: '# slow\nx = 1' }),
    syntax: () => createUnjudged(client),
    install: () => client.packages.add([`held-${Math.random()}`], { wait: 1 }),
  };
  const untilSeen = async (role: string, ask: () => Promise<unknown>) => {
    for (let times = 1; missing.has(role); times++) {
      // The check names a role that was never seen, with these answers.
      const answer = await ask().then(() => 'success', String);
      answers.set(role, `${times} requests, the last one at ${new Date().toISOString()}: ${answer}`);
    }
  };
  await Promise.all(Object.entries(asks).map(([role, ask]) => untilSeen(role, ask)));
}

/** Creates a notebook with code that was not compiled before. */
async function createUnjudged(client: Client['client']): Promise<void> {
  await client.notebooks.create({
    serialization: { cells: [{ cell_id: 'a', code: `judged = ${Math.random()}`, options: {} }] },
  });
}

/**
 * Returns the descriptors of a process that its role may not have, and whether there are too many. A process that reads a file has it
 * open for a moment, so such a fault counts only if the process keeps it.
 */
function passingFaultsOf({ role, descriptors }: ConfinedProcess): string[] {
  const allowed = ROLES[role];
  if (allowed === undefined) return [];
  const faults = [...descriptors].flatMap(([descriptor, target]) => {
    const pattern = allowed.stdio[descriptor] ?? allowed.others;
    return pattern.test(target) ? [] : [`${descriptor} is ${target}`];
  });
  return descriptors.size > allowed.most ? [...faults, 'too many descriptors'] : faults;
}

/**
 * Returns why a process differs from the rules of its role that hold at every moment, because rights that were given up do not come
 * back, and a process never has a right that it did not inherit; empty when it does not.
 */
function faultsOf(process: ConfinedProcess, foreign: ReadonlySet<string>, hasNamespaces: boolean): string[] {
  const allowed = ROLES[process.role];
  if (allowed === undefined) return ['it has no place in the table'];
  const faults: string[] = [];
  for (const [descriptor, target] of process.descriptors) {
    if (allowed.isConfined && PRIVATE.test(target)) faults.push(`${descriptor} is ${target}`);
    if (descriptor >= FROM_LAUNCHER) faults.push(`${descriptor} is ${target}, which the launcher had open`);
    if (allowed.isConfined && foreign.has(process.openings.get(descriptor) ?? ''))
      faults.push(`${descriptor} is ${target}, which others have open`);
  }
  if (!allowed.isConfined) return faults;
  if (process.seccomp !== '2') faults.push(`Seccomp ${process.seccomp}`);
  if (process.noNewPrivileges !== '1') faults.push(`NoNewPrivs ${process.noNewPrivileges}`);
  const [effective, permitted] = process.capabilities;
  if (effective !== NONE || permitted !== NONE) faults.push(`capabilities ${process.capabilities}`);
  const own = ['ipc', 'mnt', 'pid', ...(HAS_NETWORK.has(process.role) ? [] : ['net'])];
  const missing = hasNamespaces ? own.filter((kind) => !process.namespaces.includes(kind)) : [];
  if (missing.length > 0) faults.push(`shares ${missing}`);
  return faults;
}

const NONE = '0'.repeat(16);
/** Files that no confined process may have open even for a moment: the store, and the claim of the data directory. */
const PRIVATE = /\/data\/(store|claim)/;
/** Kernels have the network by default; the installer and uv may reach one port only. */
const HAS_NETWORK = new Set(['kernel', 'install', 'uv']);

/** How often a process that has a descriptor against its rules is looked at again before it counts as kept. */
const LOOKS = 200;

/** Resolves with those of the faults of the process that it still has after many looks. */
async function keptFaults(server: AttackedServer, process: ConfinedProcess): Promise<string[]> {
  let kept = passingFaultsOf(process);
  for (let looks = 0; looks < LOOKS && kept.length > 0; looks++) {
    await new Promise((resolve) => setTimeout(resolve, 10)); // so that the process can go on
    const now = listProcesses(server.pid).find(
      ({ pid, role }) => pid === process.pid && role === process.role,
    );
    const faults = now === undefined ? [] : passingFaultsOf(now);
    kept = kept.filter((fault) => faults.includes(fault));
  }
  return kept;
}

async function findFaults(
  server: AttackedServer,
  hasNamespaces: boolean,
): Promise<{ roles: Set<string>; faults: string[] }> {
  const processes = listProcesses(server.pid);
  // A confined child must not have inherited anything that the server, the kernel host or the process of the tests has open. An inherited
  // descriptor has the same flags as the open one of its parent. An engine and the server may have one folder open; their flags differ,
  // because each has opened the folder by itself.
  const trusted = processes.filter(({ role }) => ['zygote', 'preload', 'guardian', 'worker'].includes(role));
  const foreign = new Set(
    [openingsOf(process.pid), openingsOf(server.pid), ...trusted.map(({ openings }) => openings)]
      .flatMap((openings) => [...openings.values()])
      // A file in memory is named after its use, so two of them cannot be distinguished.
      .filter((opening) => !/^\d+ (\/dev\/null$|anon_inode:|\/memfd:)/.test(opening)),
  );
  const faults: string[] = [];
  for (const one of processes) {
    const found = [...faultsOf(one, foreign, hasNamespaces), ...(await keptFaults(server, one))];
    faults.push(...found.map((fault) => `${one.role} ${one.pid}: ${fault}`));
  }
  return { roles: new Set(processes.map(({ role }) => role)), faults };
}

interface Start {
  readonly user: User;
  readonly without: string;
  readonly settings: Overrides;
  readonly withModel: boolean;
}

async function start(t: TestContext, { user, without, settings, withModel }: Start): Promise<AttackedServer> {
  const folder = mkdtempSync('/var/tmp/troupe-model-');
  t.after(() => rmSync(folder, { recursive: true }));
  chmodSync(folder, 0o755);
  const index = await startPackageIndex(t, []);
  index.hold(); // so that an installation is seen at work
  const packages = { TROUPE_PACKAGE_INDEX: index.url };
  const model = join(folder, 'tiny.gguf');
  writeFileSync(model, tinyGguf(), { mode: 0o644 });
  return startAttacked(t, {
    user,
    without,
    rotten: SLOW_PARSER,
    launcher: ['/usr/bin/python3', '-c', LAUNCHER],
    settings: { ...settings, ...packages, ...(withModel ? { TROUPE_LOCAL_MODEL: model } : {}) },
  });
}

const TRIES: readonly (readonly [user: User, without: string, settings: Overrides])[] = [
  ['this user', '', {}],
  ['this user', 'namespaces', {}],
  ['this user', 'namespaces', { TROUPE_PRELOAD: 'true' }],
  ['this user', '', { TROUPE_WORKERS: '2' }],
  ['an ordinary user', '', {}],
  ...(process.getuid?.() === 0
    ? [['this user', '', { TROUPE_KERNEL_UID: String(ORDINARY_UID) }] as const]
    : []),
];
for (const [user, without, settings] of TRIES) {
  const layers = without === '' ? 'with every layer' : `without ${without}`;
  const place = [layers, ...Object.keys(settings)].join(', with ');
  const skip = obstacle(user) ?? false;
  // A host is started again in the same way in every set-up, so only one of them does it often.
  const kills = user === 'this user' && place === 'with every layer' ? 10 : 1;
  test(`every child process of a busy server of ${user} is confined and has only its own descriptors ${place}`, {
    skip,
  }, async (t) => {
    const withModel = hasModel(user);
    const server = await start(t, { user, without, settings, withModel });
    const notebooks = await makeBusy(server, withModel);
    const hasNamespaces = without !== 'namespaces' && /namespaces/.test(server.confinement.split('NOT')[0]!);
    const check = async () => {
      const missing = new Set(NEEDED);
      if (withModel) missing.add('local model');
      // An ordinary user's Python uses our packages, but not the programs that come with them.
      if (user === 'this user') missing.add('uv');
      if ('TROUPE_PRELOAD' in settings) missing.add('preload');
      if ('TROUPE_WORKERS' in settings) missing.add('worker');
      const work = eventually('every kind of process is at work', async () => {
        const { roles, faults } = await findFaults(server, hasNamespaces);
        assert.deepEqual(faults, []);
        for (const role of roles) missing.delete(role);
        return missing.size === 0;
      });
      const answers = new Map<string, string>();
      void askAgain(server, missing, answers); // more conversions follow, so that a conversion is running whenever the test looks
      await work.catch((error: Error) => {
        const names = [...missing].map((role) => `${role} (${answers.get(role) ?? 'no answer'})`).join();
        missing.clear();
        assert.fail(`${error.message}: ${names} missing, at ${new Date().toISOString()}`);
      });
    };
    await check();
    for (let times = 0; times < kills; times++) {
      const zygote = listProcesses(server.pid).find(({ role }) => role === 'zygote');
      if (zygote !== undefined) process.kill(zygote.pid, 'SIGKILL');
      await eventually('another kernel host is at work', async () => {
        const { faults } = await findFaults(server, hasNamespaces);
        assert.deepEqual(faults, []);
        return listProcesses(server.pid).some(({ role, pid }) => role === 'zygote' && pid !== zygote?.pid);
      });
    }
    await work(server, notebooks, withModel);
    await check();
  });
}
