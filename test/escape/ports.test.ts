// tier: whole, because it attacks the confinement from many sides; as-this-user.test.ts stays in the gate
/** Notebook code on the network of the host tries to get the connections of the server's clients. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { type AttackOptions, obstacle, startAttacked } from './attacked-server.ts';
import { answerOf } from './attacks.ts';

const REQUESTS = 60;

/** Listens on the server's port in every other way that Linux has, and lets the system direct connections to it. */
const takeOver = (port: number, workers: number) => `
import ctypes, errno, json, socket, threading
taken, kept = [], []
class Instruction(ctypes.Structure):
    _fields_ = [("code", ctypes.c_ushort), ("yes", ctypes.c_ubyte), ("no", ctypes.c_ubyte), ("value", ctypes.c_uint)]
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.POINTER(Instruction))]
def catch(s):
    while True:
        connection, _ = s.accept()
        taken.append(connection.recv(4096).decode())
        connection.close()
REUSE, SHARE = (socket.SOL_SOCKET, socket.SO_REUSEADDR, 1), (socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
ONLY6 = (socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
ON_LO = (socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo")
FREELY = (socket.IPPROTO_IP, 15, 1)
def listen(port, address, options, protocol=0):
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM, protocol)
    kept.append(s)
    for option in options: s.setsockopt(*option)
    s.bind((address, port)); s.listen()
    threading.Thread(target=catch, args=(s,), daemon=True).start()
    steer = Program(1, ctypes.pointer(Instruction(6, 0, 0, ${workers})))
    s.setsockopt(socket.SOL_SOCKET, 51, bytes(steer))
ways = {
    "share": ("127.0.0.1", [SHARE]), "share and reuse": ("127.0.0.1", [SHARE, REUSE]), "reuse": ("127.0.0.1", [REUSE]),
    "all addresses": ("0.0.0.0", [SHARE, REUSE]), "mapped": ("::ffff:127.0.0.1", [SHARE, REUSE]),
    "both families": ("::", [SHARE, REUSE]), "device": ("127.0.0.1", [ON_LO, SHARE, REUSE]),
    "freely": ("127.0.0.1", [FREELY, SHARE, REUSE]), "MPTCP": ("127.0.0.1", [SHARE, REUSE], 262),
    "::1": ("::1", [SHARE, REUSE]), "all of IPv6": ("::", [ONLY6, SHARE, REUSE]),
}
answer = {}
for name, way in ways.items():
    try: listen(${port}, *way); answer[name] = None
    except OSError as error: answer[name] = errno.errorcode[error.errno]
print("ANSWER" + json.dumps(answer))
`;

const TAKEN = 'print("ANSWER" + json.dumps({"taken": taken}))';

/** Resolves with the status of a request over a new connection, or with the code of its error when there is no answer. */
function ask(url: string, headers: Record<string, string>): Promise<number | string | undefined> {
  return new Promise((resolve) => {
    const asking = request(url, { headers, agent: false }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode));
    });
    asking.setTimeout(30_000, () => asking.destroy(new Error('no answer')));
    asking.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message)).end();
  });
}

const PLACES: readonly (Required<Pick<AttackOptions, 'user' | 'without'>> & { readonly workers: number })[] =
  [
    { user: 'this user', without: '', workers: 3 },
    { user: 'this user', without: 'seccomp', workers: 3 },
    { user: 'this user', without: 'seccomp', workers: 1 },
    { user: 'this user', without: 'seccomp,namespaces', workers: 3 },
    { user: 'an ordinary user', without: 'seccomp', workers: 3 },
    { user: 'an ordinary user', without: 'seccomp,namespaces', workers: 1 },
  ];
for (const { user, without, workers } of PLACES) {
  const layers = without === '' ? 'with every layer' : `without ${without}`;
  const name = `no request to a server of ${user} with ${workers} worker(s) reaches a notebook that listens on its port, ${layers}`;
  test(name, { skip: obstacle(user) ?? false }, async (t) => {
    const settings = { TROUPE_WORKERS: String(workers) };
    const server = await startAttacked(t, { user, without, settings });
    const port = Number(new URL(server.baseUrl).port);
    const attacker = await openNotebook(server, { take: takeOver(port, workers), taken: TAKEN });
    const answer = await answerOf(attacker, 'take');
    for (const [way, error] of Object.entries(answer))
      assert.match(String(error), /^(EADDRINUSE|EPERM|EPROTONOSUPPORT|EACCES|EAFNOSUPPORT)$/, way);

    const { accessToken } = JSON.parse(readFileSync(join(server.dataDir, 'bootstrap.json'), 'utf8'));
    const headers = { Authorization: `Bearer ${accessToken}` };
    const statuses = await Promise.all(
      Array.from({ length: REQUESTS }, () => ask(`http://127.0.0.1:${port}/api/v3/me`, headers)),
    );
    assert.deepEqual(new Set(statuses), new Set([200]));
    assert.match(
      String(await ask(`http://[::1]:${port}/api/v3/me`, headers)),
      /^(ECONNREFUSED|EADDRNOTAVAIL|EAFNOSUPPORT)$/,
    );
    assert.deepEqual(await answerOf(attacker, 'taken'), { taken: [] });
  });
}
