/** The attacks of notebook code, as one cell. It prints each attack by name with the error that stopped it, or `null`. */
import assert from 'node:assert/strict';
import type { OpenNotebook } from '#test/support/notebook-fixture.ts';
import { printed, results } from '#test/support/notebook-fixture.ts';
import { bounded, kernelHostOf, kernelsOf } from '#test/support/processes.ts';
import type { AttackedServer } from './attacked-server.ts';

/** Returns the cell that attacks the server, its files, and the neighbour's kernel. */
export function attackCell(server: AttackedServer, runSocket: string, programSocket: string): string {
  const { zygote, preload = zygote } = kernelHostOf(server.host.pid);
  const facts = {
    S: server.host.pid,
    Z: zygote,
    N: preload,
    K: kernelsOf(server.host.pid)[0]?.pid ?? 0,
    DATA: server.dataDir,
    KEYRING: server.host.keyFile,
    CONFIG: server.configFile,
    THEIRS: server.neighbour.file,
    SOCKET: runSocket,
    PROGRAM: programSocket,
    PROXIES: server.proxySocket,
  };
  return `
import ctypes, json, os, resource, signal, socket
for name, value in json.loads(${JSON.stringify(JSON.stringify(facts))}).items(): globals()[name] = value
libc = ctypes.CDLL(None, use_errno=True)
def raw(value):
    if value < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
def read(path):
    with open(path, "rb") as file:
        if not file.read(1): raise OSError("empty")
def write(path):
    with open(path, "r+b") as file: file.write(b"x")
def connect(path):
    with socket.socket(socket.AF_UNIX) as s: s.settimeout(2); s.connect(path)
def peek(pid):
    buffer = ctypes.create_string_buffer(8)
    local = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 8)
    remote = (ctypes.c_size_t * 2)(0x400000, 8)
    raw(libc.process_vm_readv(pid, local, 1, remote, 1, 0))
def trace(pid): raw(libc.ptrace(0x4206, pid, 0, 0)); libc.ptrace(17, pid, 0, 0)
def listed(path, name):
    if name not in os.listdir(path): raise OSError("nothing to see")
def traced():
    pid = os.fork()
    if pid == 0: os._exit(libc.ptrace(0, 0, 0, 0) and 1)
    if os.waitpid(pid, 0)[1]: raise OSError("refused")
def sibling():
    pid = libc.syscall(56 if os.uname().machine == "x86_64" else 220, 0x8000 | 17, 0, 0, 0, 0)
    if pid == 0: os._exit(0)
    raw(pid)
def known(pid):
    if "node" not in open(f"/proc/{pid}/comm").read(): raise OSError("somebody else")
attacks = {
    "read the store": lambda: read(DATA + "/store/data.mdb"),
    "write the store": lambda: write(DATA + "/store/data.mdb"),
    "list the data directory": lambda: listed(DATA, "store"),
    "read the first credentials": lambda: read(DATA + "/bootstrap.json"),
    "read the keyring": lambda: read(KEYRING),
    "replace the keyring": lambda: os.rename("mine", KEYRING),
    "read the configuration": lambda: read(CONFIG),
    "read the neighbour's file": lambda: read(THEIRS),
    "list the sockets": lambda: listed(DATA + "/run", "awaited"),
    "server: environment": lambda: (known(S), read(f"/proc/{S}/environ")),
    "server: memory": lambda: (known(S), read(f"/proc/{S}/mem")),
    "server: open files": lambda: (known(S), os.readlink(f"/proc/{S}/fd/1")),
    "server: read a descriptor": lambda: (known(S), read(f"/proc/{S}/fd/1")),
    "server: root directory": lambda: (known(S), listed(f"/proc/{S}/root/" + DATA, "store")),
    "server: copy memory": lambda: peek(S),
    "server: trace": lambda: trace(S),
    "server: signal": lambda: os.kill(S, 0) if S != os.getpid() else known(S),
    "server: limits": lambda: resource.prlimit(S, resource.RLIMIT_CORE, (0, 0)),
    "kernel host: signal": lambda: os.kill(Z, 0),
    "kernel host: trace": lambda: trace(Z),
    "next kernel host: signal": lambda: os.kill(N, 0),
    "next kernel host: trace": lambda: trace(N),
    "neighbour's kernel: signal": lambda: os.kill(K, 0),
    "neighbour's kernel: trace": lambda: trace(K),
    "everybody: signal": lambda: os.kill(-1, 0),
    "a kernel's socket": lambda: connect(SOCKET),
    "another program's socket": lambda: connect(PROGRAM),
    "the socket for proxies": lambda: connect(PROXIES),
    "the socket for proxies, opened to everybody": lambda: (os.chmod(PROXIES, 0o777), connect(PROXIES)),
    "the passwords of the system": lambda: read("/etc/shadow"),
    "be traced by its parent": lambda: traced(),
    "a child in the name of its parent": lambda: sibling(),
    "a set-uid file": lambda: os.chmod("mine", 0o4755),
    "a set-uid file that is made so": lambda: os.close(os.open("theirs", os.O_CREAT, 0o4755)),
}
answer = {}
open("mine", "w").close()
for name, attack in attacks.items():
    try: attack(); answer[name] = None
    except OSError as error: answer[name] = type(error).__name__
print("ANSWER" + json.dumps(answer))
`;
}

/** Runs a cell that prints its answer. */
export async function answerOf(notebook: OpenNotebook, cellId: string): Promise<Record<string, unknown>> {
  const run = await bounded('the attack is over', notebook.run([cellId]), () => `the cell ${cellId}`);
  const text = results(run)
    .filter((result) => result.cellId === cellId)
    .map(printed)
    .join('');
  assert.ok(text.includes('ANSWER'), JSON.stringify([run.error, text]));
  return JSON.parse(text.split('ANSWER')[1]!) as Record<string, unknown>;
}
