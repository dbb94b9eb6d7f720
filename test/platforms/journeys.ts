/**
 * The main journeys of an installed package in a Debian tree. Each has a name, and reports a fact
 * that it has observed.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, copyFileSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { PACKAGE_ROOT } from '#src/base/install/package-root.ts';
import { Troupe } from '#src/contract/client/troupe.ts';
import { type DebianTree, DOWNLOADS, removeLeftovers, type Situation, USER } from './debian-tree.ts';

const execute = promisify(execFile);

/** A journey that was made. */
export interface Made {
  readonly journey: string;
  readonly seen: string;
}

/** The parts of `.troupe/bootstrap.json`. */
interface Bootstrap {
  readonly accessToken: string;
  readonly workspaceId: string;
}

/** Packs this checkout into a folder, and resolves with the path of the package. */
export async function pack(folder: string): Promise<string> {
  const args = ['pack', '--json', '--pack-destination', folder];
  const { stdout } = await execute('npm', args, { cwd: PACKAGE_ROOT, maxBuffer: 2 ** 26 });
  const [{ filename }] = JSON.parse(stdout.slice(stdout.indexOf('[\n'))) as [{ filename: string }];
  return join(folder, filename);
}

/**
 * Yields the journeys of a package with one version of Node.js, as they are made. Throws when one fails. The home directory of the
 * user in the tree is new, so several processes can use one tree at once.
 */
export async function* journeysOf(
  tree: DebianTree,
  packed: string,
  node: string,
): AsyncGenerator<Made, void, undefined> {
  const programs = await tree.withNode(node);
  const home = `/home/node-${node}-${process.pid}`;
  const here = join(tree.folder, home);
  const situation: Situation = {
    folder: home,
    path: [`${home}/prefix/bin`, programs],
    env: {
      npm_config_prefix: `${home}/prefix`,
      npm_config_cache: `${DOWNLOADS}/npm`,
      npm_config_prefer_offline: 'true',
      PIP_CACHE_DIR: `${DOWNLOADS}/pip`,
      TROUPE_PORT: '0',
    },
  };
  for (const folder of [here, join(tree.folder, DOWNLOADS)]) {
    mkdirSync(folder, { recursive: true });
    chownSync(folder, USER, USER);
  }
  removeLeftovers(join(tree.folder, 'home'), /^node-/);
  let server: Served | undefined;
  try {
    const version = (await tree.run(['node', '--version'], situation)).trim();
    yield { journey: 'Node.js', seen: version };

    copyFileSync(packed, join(here, 'troupe.tgz'));
    await tree.run(['npm', 'install', '-g', '--no-audit', '--no-fund', './troupe.tgz'], situation);
    yield { journey: 'npm install -g', seen: (await tree.run(['troupe', '--version'], situation)).trim() };

    server = await serve(tree, situation);
    yield { journey: 'troupe serve', seen: `ready, confinement ${server.confinement}` };
    const printed = await tree.run(
      ['bash', '-euc', firstRun().replace('http://127.0.0.1:8787', server.url)],
      situation,
    );
    assert.match(printed, /adding 4 numbers/);
    assert.match(printed, /"status":"completed"/);
    assert.match(printed, /\b100\b/);
    yield { journey: 'first run of the README', seen: 'completed, 100' };

    const access = JSON.parse(readFileSync(join(here, '.troupe/bootstrap.json'), 'utf8')) as Bootstrap;
    const troupe = new Troupe({ baseUrl: server.url, ...access });
    const notebook = await troupe.notebooks.create({ serialization: { cells: CELLS } });
    const session = await troupe.open(notebook);
    yield { journey: 'a kernel', seen: (await session.code('import sys; sys.version.split()[0]')).text };
    const run = session.run('answer');
    const types: string[] = [];
    for await (const { type } of run) types.push(type);
    const { id, status, cells } = await run.result();
    assert.deepEqual([status, cells.answer?.text], ['completed', '60']);
    assert.ok(types.includes('console-output') && types.at(-1) === 'run-status', types.join());
    yield { journey: 'a run, with its events', seen: `${status}, ${types.length} events` };

    server.process.kill('SIGKILL');
    await once(server.process, 'close');
    server = await serve(tree, situation);
    const again = new Troupe({ baseUrl: server.url, ...access });
    const stored = await again.runs.get(id);
    assert.equal(stored.status, 'completed');
    const returned = await again.open(notebook);
    const repeated = await returned.run('answer').result();
    assert.deepEqual([repeated.status, repeated.text], ['completed', '60']);
    yield { journey: 'restart after kill -9', seen: 'run and session are there, and run again' };

    const doctor = await tree.run(['troupe', 'doctor', '--json'], {
      ...situation,
      env: {
        ...situation.env,
        SERVICE_BASE_URL: server.url,
        SERVICE_ACCESS_TOKEN: access.accessToken,
        SERVICE_WORKSPACE_ID: access.workspaceId,
      },
    });
    const { ok, findings } = JSON.parse(doctor) as Doctor;
    assert.ok(ok, doctor);
    const count = findings.filter(({ status: found }) => found === 'ok').length;
    const others = findings
      .filter(({ status: found }) => found !== 'ok')
      .map(({ check, status: found }) => `${check}: ${found}`);
    yield { journey: 'troupe doctor', seen: [`${count} of ${findings.length} ok`, ...others].join(', ') };
  } finally {
    if (server !== undefined) {
      const ended = once(server.process, 'close');
      if (server.process.kill('SIGKILL')) await ended;
    }
    // Tens of thousands of files can take a busy disk a minute, for which nobody has to wait.
    spawn('rm', ['-rf', here], { detached: true, stdio: 'ignore' }).unref();
  }
}

const CELLS = [
  { cell_id: 'numbers', code: 'numbers = [1, 2, 3]' },
  { cell_id: 'answer', code: 'print(sum(numbers))\nsum(numbers) * 10' },
];

/** The parts of the report of `troupe doctor` that are read. */
interface Doctor {
  readonly ok: boolean;
  readonly findings: readonly { readonly check: string; readonly status: string }[];
}

interface Served {
  readonly process: ChildProcess;
  readonly url: string;
  readonly confinement: string;
}

/** Starts a server in the tree, and resolves when it is ready. Rejects with its output when it ends first. */
async function serve(tree: DebianTree, situation: Situation): Promise<Served> {
  const server = tree.start(['troupe', 'serve'], situation);
  const said: string[] = [];
  const url = await new Promise<string>((resolve, reject) => {
    for (const stream of [server.stdout!, server.stderr!])
      createInterface({ input: stream }).on('line', (line) => {
        said.push(line);
        const [, address] = /"url":"(http:[^"]+)".*"msg":"ready"/.exec(line) ?? [];
        if (address !== undefined) resolve(address);
      });
    server.once('exit', () => reject(new Error(`the server ended:\n${said.join('\n')}`)));
  });
  const [, confinement = 'unknown'] = /"confinement":"?(\w+)/.exec(said.join('\n')) ?? [];
  return { process: server, url, confinement };
}

/** Returns the shell block of the README's first run. */
function firstRun(): string {
  const readme = readFileSync(join(PACKAGE_ROOT, 'README.md'), 'utf8');
  const [, block = ''] = /^## First run$.*?^```sh\n(.*?)^```$/ms.exec(readme) ?? [];
  return block;
}
