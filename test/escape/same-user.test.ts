// tier: whole, because it attacks the confinement from many sides; as-this-user.test.ts stays in the gate
/** Notebook code tries the powers that one process has over others of its user, on every process of a server. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { descendants } from '#test/support/processes.ts';
import { type AttackOptions, obstacle, startAttacked } from './attacked-server.ts';
import { answerOf } from './attacks.ts';

interface Victims {
  /** The primary and the processes of the kernel host that run no code of users. */
  readonly processes: readonly number[];
  readonly workers: readonly number[];
  readonly dataDir: string;
  /** An abstract socket of another program of the same user. */
  readonly abstractSocket: string;
}

const powersCell = (victims: Victims) => `
import ctypes, errno, fcntl, json, os, resource, signal, socket, time
V = json.loads(${JSON.stringify(JSON.stringify(victims))})
libc = ctypes.CDLL(None, use_errno=True)
x86 = os.uname().machine == "x86_64"
def raw(value):
    if value < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return value
def call(on_x86, on_arm, *args): return raw(libc.syscall(on_x86 if x86 else on_arm, *args))
def owner(pid):
    ours, theirs = socket.socketpair()
    fcntl.fcntl(ours, fcntl.F_SETOWN, pid)
def write(path, text):
    with open(path, "w") as file: file.write(text)
def connect(name):
    with socket.socket(socket.AF_UNIX) as s: s.connect("\\0" + name)
def watch(path): raw(libc.inotify_add_watch(raw(libc.inotify_init1(0)), path.encode(), 0xFFF))
def slow_down(p):
    # The system takes one of these a moment from all of its processes, and a kernel that starts makes one.
    end = time.monotonic() + 30
    while True:
        try: return write(f"/proc/{p}/autogroup", "19")
        except BlockingIOError:
            if time.monotonic() > end: raise
            time.sleep(0.02)
buffer = ctypes.create_string_buffer(64)
vector = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 8)
powers = {
    "kill": lambda p: os.kill(p, 0), "kill its group": lambda p: os.killpg(os.getpgid(p), 0),
    "tgkill": lambda p: call(234, 131, p, p, 0), "tkill": lambda p: call(200, 130, p, 0),
    "sigqueue": lambda p: call(129, 138, p, 0, buffer), "pidfd": lambda p: os.pidfd_open(p),
    "be signalled for a socket": owner,
    "ptrace": lambda p: raw(libc.ptrace(0x4206, p, 0, 0)),
    "read memory": lambda p: call(310, 270, p, vector, 1, (ctypes.c_size_t * 2)(0x400000, 8), 1, 0),
    "compare": lambda p: call(312, 272, p, os.getpid(), 0, 0, 0),
    "limits": lambda p: resource.prlimit(p, resource.RLIMIT_NOFILE, (64, 64)),
    "affinity": lambda p: os.sched_setaffinity(p, {0}), "scheduler": lambda p: os.sched_setscheduler(p, 0, os.sched_param(0)),
    "scheduler attributes": lambda p: call(314, 274, p, bytes([48, 0, 0, 0]) + bytes(44), 0),
    "priority": lambda p: os.setpriority(os.PRIO_PROCESS, p, 19), "priority of its group": lambda p: os.setpriority(os.PRIO_PGRP, p, 19),
    "priority of disk": lambda p: call(251, 30, 1, p, 3 << 13), "memory to another node": lambda p: call(256, 238, p, 64, buffer, buffer),
    "pages": lambda p: call(279, 239, p, 0, None, None, None, 0),
    "robust list": lambda p: call(274, 100, p, buffer, buffer), "group of processes": lambda p: os.setpgid(p, p),
    "environment": lambda p: open(f"/proc/{p}/environ", "rb").read(), "memory": lambda p: open(f"/proc/{p}/mem", "rb"),
    "maps": lambda p: open(f"/proc/{p}/maps").read(), "count open files": lambda p: os.listdir(f"/proc/{p}/fd"),
    "folder": lambda p: os.listdir(f"/proc/{p}/cwd"), "root": lambda p: os.listdir(f"/proc/{p}/root"),
    "system call": lambda p: open(f"/proc/{p}/syscall").read(),
    "out of memory first": lambda p: write(f"/proc/{p}/oom_score_adj", "1000"),
    "name": lambda p: write(f"/proc/{p}/comm", "x"), "autogroup": slow_down,
    "core dumps": lambda p: write(f"/proc/{p}/coredump_filter", "7f"),
    "slack of timers": lambda p: write(f"/proc/{p}/timerslack_ns", "1000000"),
}
once = {
    "signal everybody": lambda: os.kill(-1, 0),
    "watch the data directory": lambda: watch(V["dataDir"] + "/bootstrap.json"), "watch the store": lambda: watch(V["dataDir"] + "/store"),
    "an abstract socket": lambda: connect(V["abstractSocket"]),
}
libc.setpriority(2, 0, 19)
answer = {}
def attempt(name, power):
    try: power(); answer[name] = None
    except OSError as error: answer[name] = errno.errorcode.get(error.errno, "error")
for name, power in once.items(): attempt(name, power)
for name, power in powers.items():
    for p in V["processes"]:
        if answer.get(name, "") is not None: attempt(name, lambda: power(p))
    for p in V["workers"]: attempt(f"{name} worker {p}", lambda: power(p))
    of_workers = [answer.pop(f"{name} worker {p}") for p in V["workers"]]
    # The worker of this kernel is one of them.
    if of_workers.count(None) == len(of_workers): answer[name] = None
    elif None in of_workers: answer[name + " another worker"] = None
print("ANSWER" + json.dumps(answer))
`;

function nicenessOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16]);
}

/**
 * Without namespaces, every process that may read a file can watch it, and Landlock has no rule for
 * that.
 */
const WATCHED = ['watch the data directory', 'watch the store'];
/**
 * Without Landlock only certain processes are protected from signals: the primary, the worker of
 * the kernel and the kernel host.
 */
const SIGNALLED = ['kill another worker', 'tgkill another worker'];
/** Root owns the folders of all processes in /proc, so it may list descriptors, but not read their targets. */
const COUNTED = ['count open files'];
interface Place extends Required<Pick<AttackOptions, 'user' | 'without'>>, Pick<AttackOptions, 'settings'> {
  /** The gaps that SECURITY.md names for this set-up. */
  readonly open: readonly string[];
}
const PLACES: readonly Place[] = [
  { user: 'this user', without: '', open: [] },
  { user: 'this user', without: 'namespaces', open: [...WATCHED, ...COUNTED] },
  {
    user: 'this user',
    without: 'namespaces,landlock',
    open: [...WATCHED, ...SIGNALLED, ...COUNTED, 'out of memory first', 'autogroup'],
  },
  { user: 'an ordinary user', without: '', open: [] },
  { user: 'an ordinary user', without: 'namespaces', open: WATCHED },
  { user: 'an ordinary user', without: 'namespaces,landlock', open: [...WATCHED, ...SIGNALLED] },
];
for (const { user, without, settings = {}, open } of PLACES) {
  const layers = without === '' ? 'with every layer' : `without ${without}`;
  const place = [layers, ...Object.keys(settings)].join(', with ');
  test(`notebook code has no power over the processes of a server of ${user}, ${place}`, {
    skip: obstacle(user) ?? false,
  }, async (t) => {
    const server = await startAttacked(t, { user, without, settings: { TROUPE_WORKERS: '2', ...settings } });
    const abstractSocket = `troupe-attacked-${server.pid}`;
    const listener = createServer((socket) => socket.destroy());
    await new Promise<void>((resolve) => listener.listen(`\0${abstractSocket}`, resolve));
    t.after(() => listener.close());
    const below = descendants(server.pid);
    const numbers = (names: RegExp) => below.filter(({ name }) => names.test(name)).map(({ pid }) => pid);
    const victims = {
      processes: [server.pid, ...numbers(/guardian|zygote/)],
      workers: numbers(/^node$/),
      dataDir: server.dataDir,
      abstractSocket,
    };
    assert.equal(victims.workers.length, 2);
    const attacker = await openNotebook(server, { powers: powersCell(victims) });
    const answer = await answerOf(attacker, 'powers');
    assert.deepEqual(
      Object.keys(answer).filter((name) => answer[name] === null),
      open,
      server.confinement,
    );
    // A kernel in a namespace of its own may slow down all processes of its user there, which are
    // its own processes.
    for (const pid of [...victims.processes, ...victims.workers])
      assert.ok(nicenessOf(pid) <= 10, `process ${pid} has niceness ${nicenessOf(pid)}`);
  });
}
