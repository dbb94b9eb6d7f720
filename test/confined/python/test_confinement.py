# tier: whole, because it attacks the confinement of kernels
"""Confinement, proved from inside cells: permitted operations work, forbidden ones fail, and nothing survives its session.

Every promise of the start-up line is tried on this machine, with each layer missing in turn, and every attack that the line calls
uncovered must succeed: a line that promises too little would be as wrong as one that promises too much.
"""

import json
import os
import shutil
import signal
import socket
import tempfile
import unittest

from support import Host, KernelLost, find_marked, is_alive, wait_until

from confinement import syscalls  # isort: skip
from confinement.detect import detect  # isort: skip

WITHOUT = (
    "",
    "namespaces",
    "landlock",
    "seccomp",
    "landlock:2",
    "namespaces,landlock:2",
    "namespaces,seccomp",
    "namespaces,landlock",
)

# attack -> the layers that stop it: n namespaces, s seccomp, a number: Landlock from that ABI on, - none, ! always stopped, c: a
# kernel of root has none of the server's capabilities
STOPPED_BY = {
    "read the key": "n 1", "write the store": "n 1", "list the data directory": "n 1", "truncate the store": "n s 3",
    "chmod the key": "n s", "stat the key": "n", "server: environ": "n c 1", "server: memory": "n c 1",
    "server: open files": "n c 1",
    "server: command line": "n", "server: ptrace": "n s c 1", "server: signal": "n s 6",
    "server: signal its group": "n s 6",
    "server: rlimits": "n s", "server: unix socket": "n", "server: abstract socket": "6", "server: TCP port": "-",
    "zygote: signal": "n s 6", "unmount what hides the data": "!", "the same in new namespaces": "!",
    "write outside": "n 1",
    "read the home directory": "n 1", "io_uring": "s", "keyring": "s",
    "init: trace": "!", "init: environ": "!", "more privileges": "!",
    "host name": "!", "new mount": "!", "a device": "!", "a file by its handle": "!",
}  # fmt: skip

ATTACKS = """
import ctypes, errno, json, os, resource, signal, socket
S, Z, DATA, PORT, HOME = {server}, {zygote}, {data!r}, {port}, {home!r}
libc = ctypes.CDLL(None, use_errno=True)
def raw(value):
    if value < 0: raise OSError(ctypes.get_errno(), "")
def connect(address):
    with socket.socket(socket.AF_UNIX) as s: s.settimeout(2); s.connect(address)
def forked(attack):
    if os.fork() == 0:
        try: attack(); os._exit(0)
        except OSError as e: os._exit(e.errno or 1)
    status = os.waitstatus_to_exitcode(os.wait()[1])
    if status: raise OSError(status, "")
def bypass(): raw(libc.unshare(0x10020000)); raw(libc.umount2(DATA.encode(), 2)); open(DATA + "/key")
def made(path): open(path, "w").close(); os.unlink(path)
def listed(path, name):
    if name not in os.listdir(path): raise OSError(errno.ENOENT, "")
tries = {{
    "read the key": lambda: open(DATA + "/key").read(),
    "write the store": lambda: open(DATA + "/store", "r+"),
    "list the data directory": lambda: listed(DATA, "key"),
    "truncate the store": lambda: os.truncate(DATA + "/store", 4),
    "chmod the key": lambda: os.chmod(DATA + "/key", 0o600),
    "stat the key": lambda: os.stat(DATA + "/key"),
    "server: environ": lambda: open(f"/proc/{{S}}/environ", "rb").read(),
    "server: memory": lambda: open(f"/proc/{{S}}/mem", "rb"),
    "server: open files": lambda: os.readlink(f"/proc/{{S}}/fd/0"),
    "server: command line": lambda: open(f"/proc/{{S}}/cmdline").read(),
    "server: ptrace": lambda: forked(lambda: raw(libc.ptrace(0x4206, S, 0, 0))),
    "server: signal": lambda: os.kill(S, 0),
    "server: signal its group": lambda: os.killpg(os.getpgid(S), 0),
    "zygote: signal": lambda: os.kill(Z, 0),
    "server: rlimits": lambda: resource.prlimit(S, resource.RLIMIT_CORE, (0, 0)),
    "server: unix socket": lambda: connect(DATA + "/run/api"),
    "server: abstract socket": lambda: connect("\\0proof-%d" % S),
    "server: TCP port": lambda: socket.create_connection(("127.0.0.1", PORT), 2).close(),
    "unmount what hides the data": lambda: raw(libc.umount2(DATA.encode(), 2)),
    "the same in new namespaces": lambda: forked(bypass),
    "write outside": lambda: made("/var/tmp/" + os.path.basename(DATA)),
    "read the home directory": lambda: open(HOME + "/" + os.path.basename(DATA)),
    "io_uring": lambda: raw(libc.syscall(425, 8, ctypes.create_string_buffer(120))),
    "keyring": lambda: raw(libc.syscall({keyctl}, 0, -3, 0)),
    "init: trace": lambda: forked(lambda: raw(libc.ptrace(0x4206, 1, 0, 0))),
    "init: environ": lambda: open("/proc/1/environ", "rb").read(),
    "more privileges": lambda: os.setgroups([0]),
    "host name": lambda: raw(libc.sethostname(b"x", 1)),
    "new mount": lambda: raw(libc.mount(b"x", b"/tmp", b"tmpfs", 0, None)),
    "a device": lambda: os.mknod("device", 0o60600, os.makedev(254, 0)),
    "a file by its handle": lambda: raw(libc.open_by_handle_at(-100, (ctypes.c_char * 16)(8, 0, 0, 0, 1), 0)),
}}
answer = {{}}
for name, attack in tries.items():
    try: attack(); answer[name] = "open"
    except OSError as e: answer[name] = errno.errorcode.get(e.errno, str(e))
print("ANSWER" + json.dumps(answer))
"""

USES = """
import importlib, json, multiprocessing, os, subprocess, sys, tempfile, urllib.request
done = {}
with multiprocessing.get_context("fork").Pool(2) as pool:
    done["multiprocessing"] = pool.map(abs, [-1, 2])
uses = {"numpy": "numpy.ones((200, 200)) @ numpy.ones((200, 200))",
        "pandas": "pandas.DataFrame({'a': [1]}).groupby('a').sum()",
        "matplotlib": "__import__('matplotlib.pyplot').pyplot.plot([1, 2])",
        "duckdb": "duckdb.sql('select 1').fetchall()",
        "polars": "polars.DataFrame({'a': [1]}).lazy().sum().collect()", "pyarrow": "pyarrow.array([1]).to_pylist()"}
for name, use in uses.items():
    globals()[name] = importlib.import_module(name); eval(use)
open("kept.txt", "w").write("x"); os.rename("kept.txt", "kept2.txt"); os.chmod("kept2.txt", 0o600)
os.unlink("kept2.txt")
os.makedirs("a/b"); os.rmdir("a/b"); os.rmdir("a")
done["tempfile"] = tempfile.NamedTemporaryFile().write(b"x")
done["subprocess"] = subprocess.run(["sh", "-c", "echo hi; kill -0 $$"], capture_output=True, text=True).stdout
command = [sys.executable, "-c", "print(1)"]
done["python"] = subprocess.run(command, capture_output=True, text=True).stdout
done["threads"] = __import__("concurrent.futures").futures.ThreadPoolExecutor(2).submit(len, "ab").result()
done["semaphore"] = multiprocessing.Semaphore(1).acquire()
print("ANSWER" + json.dumps(done))
"""
USED = {
    "multiprocessing": [1, 2],
    "tempfile": 1,
    "subprocess": "hi\n",
    "python": "1\n",
    "threads": 2,
    "semaphore": True,
}

REFUSED = """
import ctypes, errno, json, socket
libc = ctypes.CDLL(None, use_errno=True)
def user_faults():
    if libc.syscall({userfaultfd}, 1) < 0: raise OSError(ctypes.get_errno(), "")
tries = {{name: lambda family=family, kind=kind: socket.socket(family, kind) for name, family, kind in
          (("VSOCK", 40, 1), ("ALG", 38, 5), ("PACKET", 17, 3))}} | {{"userfaultfd": user_faults}}
seen = {{}}
for name, attack in tries.items():
    try: attack(); seen[name] = "open"
    except OSError as e: seen[name] = errno.errorcode[e.errno]
print("ANSWER" + json.dumps(seen))
""".format(userfaultfd=syscalls.NUMBERS["userfaultfd"][syscalls.MACHINE or 0])

NETWORK = """
import errno, json, os, socket
seen = {{}}
for name, port in (("server", {port}), ("itself", 0)):
    try:
        own = None if port else socket.create_server(("127.0.0.1", 0))
        socket.create_connection(("127.0.0.1", port or own.getsockname()[1]), 2).close(); seen[name] = "open"
    except OSError as e: seen[name] = errno.errorcode[e.errno]
print("ANSWER" + json.dumps(seen))
"""

SHARED_PORT = """
import asyncio, concurrent.futures, ctypes, errno, json, socket
def outcome(attempt):
    try: attempt(); return "open"
    except OSError as e: return errno.errorcode[e.errno]
def share(port):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    s.bind(("127.0.0.1", port)); s.listen()
    return s
kept = share(0)
class Instruction(ctypes.Structure):
    _fields_ = [("code", ctypes.c_ushort), ("yes", ctypes.c_ubyte), ("no", ctypes.c_ubyte), ("value", ctypes.c_uint)]
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.POINTER(Instruction))]
def steer():
    kept.setsockopt(socket.SOL_SOCKET, 51, bytes(Program(1, ctypes.pointer(Instruction(6, 0, 0, 0)))))
def serve():
    server = asyncio.start_server(print, "127.0.0.1", 0, reuse_port=True)
    concurrent.futures.ThreadPoolExecutor().submit(lambda: asyncio.run(server)).result().close()
print("ANSWER" + json.dumps({{
    "join": outcome(lambda: share({port})), "steer": outcome(steer), "twice": outcome(lambda: share(kept.getsockname()[1])),
    "asyncio": outcome(serve),
}}))
"""

ESCAPES = """
import os, subprocess
child = subprocess.Popen(["sleep", "{mark}"], start_new_session=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: os.execvp("sleep", ["sleep", "{mark}"])
    os._exit(0)
pid, status = os.wait()
"""


def tell(outcome):
    """Returns the text that a cell printed after the word ANSWER."""
    assert "ANSWER" in outcome.printed, (outcome.printed[-2000:], outcome.outputs)
    return json.loads(outcome.printed.split("ANSWER")[1])


class Server:
    """A data directory with a key, a store, and workspaces; sockets; secrets in the home directory: all that is to be
    kept."""

    def __init__(self, without):
        self.base = os.path.realpath(tempfile.mkdtemp(prefix="proof-", dir="/var/tmp"))
        self.data = os.path.join(self.base, os.path.basename(self.base) + "-data")
        self.works = [os.path.join(self.data, "workspaces", name, "files") for name in "ab"]
        for folder in (os.path.join(self.data, "run"), *self.works):
            os.makedirs(folder)
        self.home = os.path.expanduser("~")
        self.secrets = [os.path.join(self.data, "key"), os.path.join(self.data, "store")]
        self.secrets.append(os.path.join(self.home, os.path.basename(self.data)))
        for path in self.secrets:
            with open(path, "w", encoding="ascii") as file:
                file.write("secret")
        self.sockets = [
            socket.socket(socket.AF_UNIX),
            socket.socket(socket.AF_UNIX),
            socket.create_server(("127.0.0.1", 0)),
        ]
        addresses = (os.path.join(self.data, "run/api"), "\0" + os.path.basename(self.base))
        for listener, address in zip(self.sockets, addresses):
            listener.bind(address)
            listener.listen(50)
        self.abstract = addresses[1][1:]
        self.port = self.sockets[2].getsockname()[1]
        self.host = Host("numpy pandas", env={"TROUPE_CONFINE_WITHOUT": without, "SECRET": "hunter2"})
        self.host.wait_for("preloaded")

    def open(self, cells, work=0, **confine):
        return self.host.open(cells, cwd=self.works[work], confine={"hidden": [self.data], **confine})

    def attack(self, kernel):
        code = ATTACKS.format(
            server=os.getpid(), zygote=self.host.children()[0], data=self.data, port=self.port, home=self.home,
            keyctl=syscalls.NUMBERS["keyctl"][syscalls.MACHINE or 0],
        )  # fmt: skip
        return tell(kernel.scratchpad(code.replace('"\\0proof-%d" % S', repr("\0" + self.abstract))))

    def stop(self):
        self.host.stop()
        for listener in self.sockets:
            listener.close()
        os.unlink(self.secrets[2])
        shutil.rmtree(self.base, ignore_errors=True)


class Confined(unittest.TestCase):
    def start(self, without=""):
        server = Server(without)
        self.addCleanup(server.stop)
        return server

    def found(self, without):
        before = os.environ.get("TROUPE_CONFINE_WITHOUT")
        os.environ["TROUPE_CONFINE_WITHOUT"] = without
        try:
            return detect()
        finally:
            os.environ.pop("TROUPE_CONFINE_WITHOUT")
            if before is not None:
                os.environ["TROUPE_CONFINE_WITHOUT"] = before

    def test_every_attack_is_stopped_by_the_layers_that_are_there_and_cells_work(self):
        for without in WITHOUT:
            with self.subTest(without=without):
                found, server = self.found(without), Server(without)
                try:
                    kernel = server.open({"uses": USES})
                    results = server.attack(kernel)
                    stopped = {name for name, result in results.items() if result != "open"}
                    self.assertEqual(stopped, {name for name in results if is_stopped(name, found)}, results)
                    self.assertEqual(tell(kernel.run("uses")), USED)
                finally:
                    server.stop()

    def test_the_start_up_line_lists_the_layers_of_confinement(self):
        for without, says in {
            "": ("namespaces", "Landlock", "seccomp"),
            "namespaces": ("NOT covered: no namespaces (switched off)",),
            "namespaces,landlock,seccomp": ("none: ", "the server too", "no Landlock: the server's files are readable"),
            "landlock": (
                f"no Landlock: what {'only root' if os.geteuid() == 0 else 'this user'} may read below /usr",
            ),
        }.items():
            host = Host(env={"TROUPE_CONFINE_WITHOUT": without})
            self.addCleanup(host.stop)
            for text in says:
                self.assertIn(text, host.hello["confinement"])

    def test_only_internet_and_unix_sockets_can_be_made_and_no_uncounted_memory(self):
        if not self.found("").seccomp:
            self.skipTest("no seccomp here")
        refused = tell(self.start().open({}).scratchpad(REFUSED))
        self.assertEqual(refused, {"VSOCK": "EACCES", "ALG": "EACCES", "PACKET": "EACCES", "userfaultfd": "EPERM"})

    def test_a_kernel_has_no_open_files_but_its_own(self):
        for without in ("", "namespaces"):
            kernel = self.start(without).open({})
            held = kernel.evaluate("[__import__('os').readlink('/proc/self/fd/' + n) for n in map(str, range(40))"
                                   " if __import__('os').path.lexists('/proc/self/fd/' + n)]")
            files = {one for one in held if one.startswith("/")}
            self.assertEqual(files, {"/dev/null"}, held)

    def test_on_the_hosts_network_no_kernel_joins_the_port_of_another_program(self):
        if not self.found("").seccomp:
            self.skipTest("no seccomp here")
        for without in ("", "namespaces"):
            with socket.create_server(("127.0.0.1", 0), reuse_port=True) as other:
                code = SHARED_PORT.format(port=other.getsockname()[1])
                seen = tell(self.start(without).open({}).scratchpad(code))
            self.assertEqual(
                seen, {"join": "EADDRINUSE", "steer": "EPERM", "twice": "EADDRINUSE", "asyncio": "open"}, without
            )

    def test_in_a_network_of_its_own_a_kernel_shares_ports_between_its_processes(self):
        if not self.found("").namespaces:
            self.skipTest("no namespaces here")
        seen = tell(self.start().open({}, network="none").scratchpad(SHARED_PORT.format(port=0)))
        self.assertEqual(set(seen.values()), {"open"}, seen)

    def test_network_none_leaves_a_loopback_of_its_own_and_the_sessions_socket(self):
        for without in ("", "namespaces"):
            server = self.start(without)
            seen = tell(server.open({}, network="none").scratchpad(NETWORK.format(port=server.port)))
            self.assertEqual((seen["server"] == "open", seen["itself"] == "open"), (False, without == ""), seen)

    def test_network_none_is_refused_where_the_system_does_not_support_it(self):
        server = self.start("namespaces,seccomp")
        with self.assertRaises(KernelLost):
            server.open({}, network="none")
        self.assertEqual(server.host.wait_for("exited")["code"], 70)

    def test_other_sessions_and_their_files_are_out_of_reach(self):
        server = self.start()
        a, b = server.open({}), server.open({}, work=1)
        a.scratchpad(
            "open('mine', 'w').write('x'); open('/tmp/mine', 'w').write('x'); open('/dev/shm/mine', 'w').write('x')"
        )
        found = self.found("")
        if found.namespaces:
            self.assertEqual(
                b.evaluate("[__import__('os').path.exists(p) for p in ('/tmp/mine', '/dev/shm/mine')]"), [False, False]
            )
            self.assertEqual(b.evaluate("[int(p) for p in __import__('os').listdir('/proc') if p.isdigit()]"), [1, 2])
        self.assertEqual(b.evaluate(f"__import__('os').access({server.works[0] + '/mine'!r}, 4)"), False)
        self.assertTrue(os.path.exists(server.works[0] + "/mine"))

    def test_a_kernel_has_no_privileges_and_no_set_uid_program_gives_it_any(self):
        for without in ("", "namespaces"):
            kernel = self.start(without).open({})
            status = dict(
                line.split(":\t")
                for line in kernel.evaluate("open('/proc/self/status').read().splitlines()")
                if ":\t" in line
            )
            self.assertEqual({status[name] for name in ("CapPrm", "CapEff", "CapInh", "CapAmb")}, {"0" * 16}, status)
            self.assertEqual((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
            if os.geteuid() == 0 or without == "":
                self.assertEqual(status["CapBnd"], "0" * 16)

    def test_interrupts_and_ends_work_as_without_confinement(self):
        server = self.start()
        kernel = server.open({"slow": "import time\nprint('go')\ntime.sleep(60)", "end": "import os\nos._exit(3)"})
        seq = kernel.start_run("slow")
        before = kernel.read_until(
            lambda m: m["op"] == "cell-op" and isinstance(m["console"], dict) and "go" in m["console"]["data"]
        )
        kernel.interrupt()
        self.assertEqual(kernel.finish(seq, before).status("slow"), "interrupted")
        kernel.start_run("end")
        self.assertEqual(
            server.host.wait_for("exited", kernel.id),
            {"op": "exited", "id": kernel.id, "code": 3, "signal": None, "out_of_memory": False, "words": ""},
        )
        for code, number in (("import os; os.kill(os.getpid(), 9)", 9), ("import ctypes; ctypes.string_at(0)", 11)):
            kernel = server.open({"a": code})
            kernel.start_run("a")
            self.assertEqual(server.host.wait_for("exited", kernel.id)["signal"], number)

    def test_everything_that_a_kernel_started_ends_when_it_is_killed(self):
        for without in ("", "namespaces"):
            server, mark = self.start(without), f"97{os.getpid():07d}{len(without)}"
            for end in ("signal", "exit"):
                kernel = server.open({"a": ESCAPES.format(mark=mark), "b": "import os as o\no._exit(3)"})
                kernel.run("a")
                wait_until(lambda: len(find_marked(mark)) == 2, "the children of the cells")
                if end == "signal":
                    kernel.signal(signal.SIGKILL)
                else:
                    kernel.start_run("b")
                server.host.wait_for("exited", kernel.id)
                wait_until(lambda: not find_marked(mark), "the end of what the cells started", 2)

    def test_confined_kernels_end_when_the_zygote_or_the_guardian_is_killed(self):
        for victim in ("zygote", "guardian"):
            server, mark = self.start(), f"96{os.getpid():07d}{len(victim)}"
            kernel = server.open({"a": ESCAPES.format(mark=mark)})
            kernel.run("a")
            pids = [*server.host.children(), kernel.pid]
            os.kill(pids[0] if victim == "zygote" else server.host.process.pid, signal.SIGKILL)
            wait_until(lambda: not any(map(is_alive, pids)) and not find_marked(mark), "the end of everything", 2)

    def test_orders_that_confine_in_an_unknown_way_are_refused(self):
        server = self.start()
        for confine in ({"network": "some"}, {"hiden": []}, {"uid": "root"}):
            host = server.host
            host.tell(op="fork", id="x", connection={}, confine=confine)
            self.assertEqual(host.wait_for("refused", "x")["id"], "x")


def is_stopped(attack, found):
    layers = {"n": found.namespaces, "s": found.seccomp, "!": True, "-": False, "c": found.root}
    return any(found.landlock >= int(by) if by.isdigit() else layers[by] for by in STOPPED_BY[attack].split())


if __name__ == "__main__":
    unittest.main()
