// tier: whole, because it attacks the confinement from many sides; as-this-user.test.ts stays in the gate
/** Attacks on the server by a notebook that has taken over a parser: the one for files, or the one that checks syntax. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '#src/contract/client/api-error.ts';
import { obstacle, startAttacked, type User } from './attacked-server.ts';

/** A parser that runs the code after a mark, and reports the result as a syntax error. */
const ROTTEN_PARSER = `
import ast
parse = ast.parse
def rotten(source, *more, **named):
    if isinstance(source, str) and source.startswith("#rotten\\n"):
        found = {}
        exec(source, found)
        raise SyntaxError(found["answer"], ("", 1, 1, ""))
    return parse(source, *more, **named)
ast.parse = rotten
import builtins
compile_really = builtins.compile
def rotten_compile(source, *more, **named):
    if isinstance(source, str) and source.startswith("#judge\\n"):
        found = {}
        exec(source, found)
        if found["answer"]: raise SyntaxError("it worked")
    return compile_really(source, *more, **named)
builtins.compile = rotten_compile
`;

function attacksOn(facts: Readonly<Record<string, unknown>>): string {
  return `#rotten
import json, os, socket, subprocess
for name, value in json.loads(${JSON.stringify(JSON.stringify(facts))}).items(): globals()[name] = value
def known(pid):
    if "node" not in open(f"/proc/{pid}/comm").read(): raise OSError("somebody else")
def listed(path):
    if not os.listdir(path): raise OSError("empty")
attacks = {
    "read the store": lambda: open(DATA + "/store/data.mdb", "rb").read(1),
    "read the first credentials": lambda: open(DATA + "/bootstrap.json").read(),
    "list the workspaces": lambda: listed(DATA + "/workspaces"),
    "read the keyring": lambda: open(KEYRING).read(),
    "read the configuration": lambda: open(CONFIG).read(),
    "write beside it": lambda: open(KEYRING + ".new", "w"),
    "write a file of its own": lambda: open("/var/tmp/made-by-a-conversion", "w").write("x"),
    "reach the server": lambda: socket.create_connection(("127.0.0.1", PORT), 2),
    "signal the server": lambda: os.kill(S, 0) if S != os.getpid() else known(S),
    "server: memory": lambda: (known(S), open(f"/proc/{S}/mem", "rb")),
    "server: environment": lambda: (known(S), open(f"/proc/{S}/environ", "rb").read()),
}
tried = {}
for name, attack in attacks.items():
    try: attack(); tried[name] = None
    except OSError as error: tried[name] = error.errno or type(error).__name__
answer = f"ANSWER{json.dumps(tried)}ANSWER"
`;
}

const TRIES: readonly (readonly [user: User, without: string])[] = [
  ...['', 'namespaces', 'landlock', 'seccomp'].map((without) => ['this user', without] as const),
  ['an ordinary user', ''],
  ['an ordinary user', 'namespaces'],
];
for (const [user, without] of TRIES) {
  const layers = without === '' ? 'with every layer' : `without ${without}`;
  const skip = obstacle(user) ?? false;
  test(`a parser that a notebook has taken over reaches nothing outside its confinement as ${user} ${layers}`, {
    skip,
  }, async (t) => {
    const server = await startAttacked(t, { user, without, rotten: ROTTEN_PARSER });
    const { client } = server;
    const { id } = await client.notebooks.import({ format: 'py', content: 'x = 1' });
    assert.equal((await client.notebooks.get(id)).serialization.cells[0]?.code, 'x = 1');
    const content = attacksOn({
      S: server.pid,
      DATA: server.dataDir,
      KEYRING: server.keyringFile,
      CONFIG: server.configFile,
      PORT: Number(new URL(server.baseUrl).port),
    });
    const refusal = await client.notebooks.import({ format: 'py', content }).catch((error: unknown) => error);
    assert.ok(refusal instanceof ApiError, String(refusal));
    const answer = JSON.parse(refusal.message.split('ANSWER')[1]!) as Record<string, string | number | null>;
    assert.equal(Object.keys(answer).length, 11);
    const open = Object.keys(answer).filter((name) => answer[name] === null);
    assert.deepEqual(open, [], server.confinement);

    const isValid = async (code: string) => {
      const cells = [{ cell_id: 'a', code, options: {} }];
      return (await client.notebooks.create({ serialization: { cells } })).serialization.valid;
    };
    assert.equal(await isValid('#judge\nanswer = True'), false, 'the judge says what came of it');
    const attacks = content.replace('#rotten', '#judge');
    assert.equal(await isValid(`${attacks}\nanswer = None in tried.values()`), true, server.confinement);
  });
}
