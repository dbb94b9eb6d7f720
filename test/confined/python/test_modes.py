"""Without namespaces, a kernel changes modes, owners and times of files only below the folders that it may write, by every
system call there is for it. Programs that change them there work as elsewhere."""

import json
import os
import platform
import shutil
import tempfile
import unittest

from support import Host, is_alive, wait_until

import processes  # isort: skip
from confinement import modes, syscalls  # isort: skip
from confinement.detect import detect  # isort: skip

NUMBERS = {name: numbers[syscalls.MACHINE or 0] for name, numbers in syscalls.NUMBERS.items()}
ATTACKS = """
import ctypes, errno, json, os, threading
F = json.loads({facts!r})
libc = ctypes.CDLL(None, use_errno=True)
os.symlink(F["file"], "link")
os.symlink(F["folder"], "folder")
times, name, value = ctypes.create_string_buffer(32), ctypes.create_string_buffer(b"user.x\\0"), ctypes.create_string_buffer(64)
outcome = {{}}
def call(title, number, *args):
    code = libc.syscall(number, *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    outcome[title] = "done" if code >= 0 else errno.errorcode[ctypes.get_errno()]
def attempt(title, number, change, value, path_at, at, where, fd):
    args = [0] * 6
    if path_at is not None: args[path_at] = where
    if at is not None: args[at] = fd
    if change == "mode": args[value] = 0o777
    elif change == "owner": args[value:value + 2] = [os.getuid(), os.getgid()]
    else: args[value] = times
    call(title, number, *args)
fd, folder_fd = os.open(F["file"], os.O_RDONLY), os.open(F["folder"], os.O_RDONLY)
paths = {{"path": F["file"], "link": "link", "linked folder": "folder/file", "own descriptor": f"/proc/self/fd/{{fd}}",
         "dev": f"/dev/fd/{{fd}}", "folder": F["folder"], "above": "..", "shared memory": "/dev/shm"}}
for title, (number, *spec) in F["decided"].items():
    _, _, path_at, at = spec
    for how, path in paths.items():
        if title == "lchown" and how == "link": continue  # the link itself is the kernel's own
        if path_at is not None: attempt(f"{{title}} by {{how}}", number, *spec, path.encode(), -100)
    if path_at is not None and at is not None: attempt(f"{{title}} below a descriptor", number, *spec, b"file", folder_fd)
    if at is not None and (path_at is None or title in ("utimensat", "futimesat")):
        attempt(f"{{title}} of a descriptor", number, *spec, 0, fd)
        attempt(f"{{title}} of a folder's descriptor", number, *spec, 0, folder_fd)
call("fchmodat2 with an empty path", F["numbers"]["fchmodat2"], fd, b"", 0o777, 0x1000)
call("fchownat with an empty path", F["numbers"]["fchownat"], fd, b"", os.getuid(), os.getgid(), 0x1000)
call("utimensat with an empty path", F["numbers"]["utimensat"], fd, b"", times, 0x1000)
for title in F["refused"]:
    if F["numbers"][title] is not None:
        first = fd if title.startswith("f") and title != "file_setattr" else F["file"].encode()
        args = (-100, first, 0, name, value, 16) if title.endswith("at") else (first, name, value, 1, 0)
        if title == "file_setattr": args = (-100, first, value, 24, 0)
        call(title, F["numbers"][title], *args)
for title, command in F["ioctls"].items(): call(title, F["numbers"]["ioctl"], fd, command, value)
# A path that changes under the supervisor's eyes: the change is made on the file that was looked at, or not at all.
open("mine", "w").close()
for n in range(200):
    path = ctypes.create_string_buffer(("mine" + "\\0" * 200).encode())
    racer = threading.Thread(target=lambda: ctypes.memmove(path, F["file"].encode() + b"\\0", len(F["file"]) + 1))
    racer.start(); libc.syscall(F["numbers"]["fchmodat"], -100, path, 0o777); racer.join()
print("ANSWER" + json.dumps(outcome))
"""
USES = """
import json, os, pathlib, shutil, socket, subprocess, sys, tarfile, tempfile, threading
failed = {}
def use(name, work):
    try: work()
    except Exception as error: failed[name] = repr(error)
def run(command):
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    if done.returncode: raise OSError(done.stderr.strip()[:300])
def expect(value, wanted):
    if value != wanted: raise ValueError(f"{value} in place of {wanted}")
def tar():
    with tarfile.open("t.tar", "w") as file: file.add("b")
    with tarfile.open("t.tar") as file: file.extractall("sub")
def at_a_descriptor():
    folder = os.open("sub", os.O_RDONLY)
    os.chmod("b", 0o700, dir_fd=folder); expect(os.stat("sub/b").st_mode & 0o777, 0o700)
def nameless():
    with tempfile.TemporaryFile() as file: os.fchmod(file.fileno(), 0o640)
    with socket.socket(socket.AF_UNIX) as s: os.fchmod(s.fileno(), 0o600)
def in_a_thread():
    errors = []
    def work():
        try: os.chmod("a", 0o644)
        except OSError as error: errors.append(error)
    thread = threading.Thread(target=work); thread.start(); thread.join()
    expect(errors, [])
open("a", "w").write("x")
use("chmod", lambda: (os.chmod("a", 0o640), expect(os.stat("a").st_mode & 0o7777, 0o640)))
use("fchmod", lambda: (os.fchmod(os.open("a", os.O_RDONLY), 0o641), expect(os.stat("a").st_mode & 0o7777, 0o641)))
use("utime", lambda: (os.utime("a", (1, 2)), expect(os.stat("a").st_mtime, 2)))
use("now", lambda: (os.utime("a"), expect(os.stat("a").st_mtime > 2, True)))
use("nanoseconds", lambda: (os.utime("a", ns=(1, 1_000_000_007)), expect(os.stat("a").st_mtime_ns, 1_000_000_007)))
use("utime of a descriptor", lambda: (os.utime(os.open("a", os.O_RDONLY), (5, 6)), expect(os.stat("a").st_mtime, 6)))
use("chown to the same", lambda: os.chown("a", os.getuid(), os.getgid()))
use("touch", lambda: pathlib.Path("a").touch()); use("copy", lambda: shutil.copy("a", "b"))
use("copy2", lambda: shutil.copy2("a", "c")); use("tarfile", tar); use("at a descriptor", at_a_descriptor)
use("copytree", lambda: shutil.copytree("sub", "sub2")); use("copytree here", lambda: shutil.copytree("sub", ".", dirs_exist_ok=True))
use("nameless", nameless); use("in a thread", in_a_thread)
os.symlink("a", "l")
use("times of a link", lambda: (os.utime("l", (3, 4), follow_symlinks=False), expect(os.lstat("l").st_mtime, 4)))
use("own path to a descriptor", lambda: os.chmod(f"/proc/self/fd/{os.open('a', os.O_RDONLY)}", 0o600))
use("shared memory", lambda: os.unlink(shm) if os.chmod(shm := tempfile.NamedTemporaryFile(dir="/dev/shm", delete=False).name, 0o640) is None else None)
for command in ("cp -p a d", "cp -a a e", "tar xf t.tar -C sub", "touch -d 2020-01-01 a", "touch -h -d 2020-01-01 l", "chmod +x a",
                "chmod 700 sub", "install -m 600 a f", "mkdir -m 750 g", "mv a h", f"{sys.executable} -m venv --without-pip v"):
    use(command, lambda: run(command))
if shutil.which("git"): use("git", lambda: run("git init -q repository && cd repository && touch x && git add x"))
def missing():
    try: os.chmod("no such file", 0o600)
    except FileNotFoundError: return
    raise ValueError("no error")
use("missing", missing)
print("ANSWER" + json.dumps(failed))
"""


class Modes(unittest.TestCase):
    def setUp(self):
        self.base = os.path.realpath(tempfile.mkdtemp(prefix="modes-", dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, self.base, True)
        self.work = os.path.join(self.base, "data", "work")
        self.folder = os.path.join(self.base, "shared")  # a kernel may read it, and so may open it
        for folder in (self.work, self.folder):
            os.makedirs(folder)
        self.file = os.path.join(self.folder, "file")
        with open(self.file, "w", encoding="ascii") as file:
            file.write("x")

    def open(self, without):
        self.host = Host("", env={"TROUPE_CONFINE_WITHOUT": without})
        self.addCleanup(self.host.stop)
        confine = {"hidden": [os.path.join(self.base, "data")], "read": [self.folder]}
        return self.host.open({}, cwd=self.work, confine=confine)

    def test_no_call_changes_a_file_outside_of_the_folders_that_a_kernel_may_write(self):
        watched = (self.file, self.folder, os.path.dirname(self.work), "/dev/shm")
        attributes = lambda: {path: (os.stat(path).st_mode, os.stat(path).st_ctime_ns) for path in watched[:3]}  # noqa: E731
        before, mode = attributes(), os.stat("/dev/shm").st_mode
        facts = {
            "file": self.file,
            "folder": self.folder,
            "numbers": NUMBERS,
            "refused": modes.REFUSED,
            "ioctls": modes.REFUSED_IOCTLS,
            "decided": {
                name: (NUMBERS[name], call.change, call.value, call.path, call.at)
                for name, call in modes.DECIDED.items()
                if NUMBERS[name] is not None
            },
        }
        for without in ("namespaces", "namespaces,landlock"):
            with self.subTest(without=without):
                shutil.rmtree(self.work)
                os.makedirs(self.work)
                before[os.path.dirname(self.work)] = attributes()[os.path.dirname(self.work)]
                outcome = tell(self.open(without).scratchpad(ATTACKS.format(facts=json.dumps(facts))))
                done = [name for name, result in outcome.items() if result not in ("EPERM", "ENOTSUP")]
                self.assertEqual(done, [], outcome)
                self.assertGreater(len(outcome), 40)
                self.assertEqual(attributes(), before)
                self.assertEqual(os.stat("/dev/shm").st_mode, mode)

    def test_programs_change_modes_and_times_below_the_folders_that_a_kernel_may_write(self):
        for without in ("namespaces", "namespaces,landlock"):
            with self.subTest(without=without):
                shutil.rmtree(self.work)
                os.makedirs(self.work)
                self.assertEqual(tell(self.open(without).scratchpad(USES)), {})

    def test_a_kernel_whose_supervisor_was_killed_ends(self):
        kernel = self.open("namespaces")
        self.assertEqual(name_of(kernel.pid), "troupe-modes")
        below = processes.descendants(kernel.pid)
        self.assertEqual([name_of(pid) for pid in below], ["troupe-kernel"])
        os.kill(kernel.pid, 9)
        self.assertEqual(self.host.wait_for("exited", kernel.id)["signal"], 9)
        wait_until(lambda: not any(map(is_alive, below)), "the end of the kernel")

    def test_the_end_of_a_supervised_kernel_is_reported_as_it_was(self):
        kernel = self.open("namespaces")
        kernel.start_scratchpad("import os; os._exit(3)")
        ended = self.host.wait_for("exited", kernel.id)
        self.assertEqual((ended["code"], ended["signal"]), (3, None))

    def test_this_machine_supervises_where_the_tests_of_the_others_say_so(self):
        if platform.machine() not in ("x86_64", "aarch64"):
            self.skipTest("no seccomp here")
        os.environ["TROUPE_CONFINE_WITHOUT"] = "namespaces"
        self.addCleanup(os.environ.pop, "TROUPE_CONFINE_WITHOUT")
        self.assertTrue(detect().decides_modes)


def tell(outcome):
    """Returns what a cell printed after the word ANSWER."""
    assert "ANSWER" in outcome.printed, (outcome.printed[-2000:], outcome.outputs)
    return json.loads(outcome.printed.split("ANSWER")[1])


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return None
