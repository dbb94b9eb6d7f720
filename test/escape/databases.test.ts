// tier: whole, because it attacks the confinement from many sides; as-this-user.test.ts stays in the gate
// runs alone: it starts many processes, which keep both processors busy
/**
 * The reach of SQL from notebooks through the databases of a workspace, and of an engine that an attacker has taken over.
 */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import type { Overrides } from '#test/support/server-fixture.ts';
import { placed, plantingCode } from '#test/support/stand-ins/planted-databases.ts';
import { type AttackedServer, ORDINARY_UID, obstacle, startAttacked, type User } from './attacked-server.ts';
import { answerOf } from './attacks.ts';
import { DATA_FILES, DUCKDB, FORGED_SQLITE, PLANTED_SQLITE, SQLITE } from './sql-statements.ts';

/** An engine that runs the Python code that it is sent in place of a statement. */
const ROTTEN_ENGINE = `
import msgspec
decode = msgspec.json.decode
def rotten(body, *more, **named):
    request = decode(body, *more, **named)
    if isinstance(request, dict) and str(request.get("sql", "")).startswith("#rotten"):
        found = {}
        exec(request["sql"], found)
        request["sql"] = "SELECT '" + found["answer"].replace("'", "''") + "' AS answer"
    return request
msgspec.json.decode = rotten
`;

const SETUPS: readonly (readonly [user: User, without: string, settings: Overrides])[] = [
  ['this user', '', {}],
  ['this user', 'namespaces', {}],
  ['an ordinary user', '', {}],
  ['an ordinary user', 'namespaces', {}],
  ...(process.getuid?.() === 0
    ? [['this user', '', { TROUPE_KERNEL_UID: String(ORDINARY_UID) }] as const]
    : []),
];

for (const [user, without, settings] of SETUPS) {
  const place = [user, without && `without ${without}`, ...Object.keys(settings)].filter(Boolean).join(', ');
  const skip = obstacle(user) ?? false;

  test(`statements reach only their own database: ${place}`, { skip }, async (t) => {
    const server = await startAttacked(t, { user, without, settings });
    const folder = await withDatabases(server);
    const notebook = await openNotebook(server, cells(server, folder), { datasourceSlugs: SLUGS });
    await answerOf(notebook, 'prepare');
    for (const cell of ['sqlite', 'planted', 'forged', 'duckdb', 'files']) {
      const answer = await answerOf(notebook, cell);
      const allowed = Object.entries(answer).filter(([, said]) => said !== null);
      assert.deepEqual(allowed, [], `${cell}: ${server.confinement}`);
    }
    assert.deepEqual(await answerOf(notebook, 'usual'), { sqlite: 1, planted: 1, duckdb: 1, files: 1 });
    assert.deepEqual(strays(dirname(server.dataDir)), []);
    assert.equal(readFileSync(server.neighbour.file, 'utf8'), 'theirs');
  });

  test(`an engine that was taken over reaches only its own folder: ${place}`, { skip }, async (t) => {
    const server = await startAttacked(t, { user, without, settings, rotten: ROTTEN_ENGINE });
    const folder = await withDatabases(server);
    const notebook = await openNotebook(server, cells(server, folder), { datasourceSlugs: SLUGS });
    await answerOf(notebook, 'prepare');
    for (const cell of ['rotten_sqlite', 'rotten_duckdb']) {
      const { open, descriptors } = await answerOf(notebook, cell);
      assert.deepEqual(open, [], `${cell}: ${server.confinement}`);
      const others = (descriptors as string[]).filter(
        (path) => !/^(\/dev\/null|socket:|anon_inode:|pipe:|\/proc\/\d+\/cgroup)/.test(path),
      );
      assert.deepEqual(
        others.filter((path) => !path.startsWith(folder)),
        [],
      );
    }
  });
}

const USUAL = ['sqlite', 'planted', 'duckdb', 'files'];
const SLUGS = [...USUAL, 'forged'];

/** Creates the datasources and a file of the neighbour; returns the folder of the attacking workspace. */
async function withDatabases(server: AttackedServer): Promise<string> {
  const paths = {
    sqlite: 'a.sqlite',
    planted: 'planted.sqlite',
    forged: 'forged.sqlite',
    duckdb: 'a.duckdb',
    files: 'data',
  };
  for (const [slug, path] of Object.entries(paths)) {
    const kind = slug === 'planted' || slug === 'forged' ? 'sqlite' : slug;
    await server.client.datasources.create({ slug, connection: { kind, path } });
  }
  const bystander = await openNotebook(server.neighbour, { a: 'open("theirs.txt", "w").write("theirs")' });
  assert.equal((await bystander.run(['a'])).status, 'completed');
  await bystander.close();
  const bootstrap: unknown = JSON.parse(readFileSync(join(server.dataDir, 'bootstrap.json'), 'utf8'));
  const { workspaceId } = bootstrap as { workspaceId: string };
  return join(server.dataDir, 'workspaces', workspaceId, 'files');
}

function pathsOf(server: AttackedServer, folder: string) {
  return {
    IN: join(folder, 'inside'),
    SECRET: join(server.dataDir, 'bootstrap.json'),
    THEIRS: server.neighbour.file,
    OUT: join(dirname(server.dataDir), 'shared', 'escaped'),
  };
}

function cells(server: AttackedServer, folder: string): Record<string, string> {
  const json = (value: unknown) => `json.loads(${JSON.stringify(JSON.stringify(value))})`;
  const paths = pathsOf(server, folder);
  const attempts = (slug: string, statements: readonly string[]) =>
    `print("ANSWER" + json.dumps({sql: attempt(${JSON.stringify(slug)}, sql) for sql in ${json(statements.map((sql) => placed(sql, paths)))}}))`;
  return {
    prepare: `
from troupe import datasource
${plantingCode(paths)}
def attempt(slug, sql):
    try: return repr(datasource(slug).execute(sql).fetchall())[:200]
    except Exception as error: return None
print("ANSWER{}")`,
    sqlite: attempts('sqlite', SQLITE),
    planted: attempts('planted', PLANTED_SQLITE),
    forged: attempts('forged', FORGED_SQLITE),
    duckdb: attempts('duckdb', DUCKDB),
    files: attempts('files', DATA_FILES),
    usual: `print("ANSWER" + json.dumps({slug: datasource(slug).execute(f"SELECT a FROM {'data' if slug == 'files' else 't'}").fetchall()[0][0] for slug in ${json(USUAL)}}))`,
    rotten_sqlite: `print("ANSWER" + datasource("sqlite").execute(${rotten(server)}).fetchall()[0][0])`,
    rotten_duckdb: `print("ANSWER" + datasource("duckdb").execute(${rotten(server)}).fetchall()[0][0])`,
  };
}

/** Returns the attacks of an engine that its attacker controls, as a Python literal. */
function rotten(server: AttackedServer): string {
  const facts = {
    S: server.pid,
    DATA: server.dataDir,
    KEYRING: server.keyringFile,
    CONFIG: server.configFile,
    THEIRS: server.neighbour.file,
    PORT: Number(new URL(server.baseUrl).port),
  };
  const code = `#rotten
import json, os, socket, subprocess
globals().update(json.loads(${JSON.stringify(JSON.stringify(facts))}))
def known(pid):
    if "node" not in open(f"/proc/{pid}/comm").read(): raise OSError("somebody else")
def fork():
    if os.fork() == 0: os._exit(0)
attacks = {
    "read the store": lambda: open(DATA + "/store/data.mdb", "rb").read(1),
    "read the first credentials": lambda: open(DATA + "/bootstrap.json").read(),
    "list the workspaces": lambda: os.listdir(DATA + "/workspaces")[0],
    "list the sockets": lambda: os.listdir(DATA + "/run")[0],
    "read the keyring": lambda: open(KEYRING).read(),
    "read the configuration": lambda: open(CONFIG).read(),
    "read the neighbour's file": lambda: open(THEIRS).read(),
    "read the accounts": lambda: open("/etc/passwd").read(),
    "read the passwords": lambda: open("/etc/shadow").read(),
    "write beside the keyring": lambda: open(KEYRING + ".escaped", "w"),
    "write a temporary file": lambda: open("/tmp/escaped", "w"),
    "write a shared file": lambda: open("/dev/shm/escaped", "w"),
    "make a socket": lambda: socket.socket(),
    "reach the server": lambda: socket.create_connection(("127.0.0.1", PORT), 2),
    "start a program": lambda: subprocess.run(["/bin/true"]),
    "start a process": fork,
    "signal the server": lambda: os.kill(S, 0) if S > 100 else known(S),
    "server: memory": lambda: (known(S), open(f"/proc/{S}/mem", "rb")),
    "server: environment": lambda: (known(S), open(f"/proc/{S}/environ", "rb").read()),
}
reached = []
for name, attack in attacks.items():
    try: attack(); reached.append(name)
    except Exception: pass
def target(descriptor):
    try: return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError: return None
answer = json.dumps({"open": reached, "descriptors": [path for path in map(target, range(1024)) if path]})
`;
  return JSON.stringify(code);
}

/** Files that only a successful escape can have made. */
function strays(folder: string): string[] {
  const found = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    /escaped/.test(name),
  );
  return [
    ...found,
    ...['/escaped', '/tmp/escaped', '/var/tmp/escaped', '/dev/shm/escaped'].filter(existsSync),
  ];
}
