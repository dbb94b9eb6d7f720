# tier: whole, because it attacks the confinement of kernels
"""The reach of a kernel in the system around it: no socket of another program, no file that is
closed to others. It also leaves no file that would give its user's rights to others."""

import json
import os
import shutil
import socket
import stat
import tempfile
import unittest

from support import Host

from confinement import landlock, views  # isort: skip
from confinement.detect import detect  # isort: skip

PLACES = ("/opt", "/srv", "/var/lib", "/var/tmp", "/mnt", "/home")
CONNECT = """
import json, socket
seen = []
for path in {paths}:
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(5)
        try: s.connect(path); seen.append(path)
        except OSError: pass
print(json.dumps(seen))
"""
OWN_SOCKET = """
import os, socket, tempfile
for folder in (os.getcwd(), tempfile.gettempdir()):
    with socket.socket(socket.AF_UNIX) as own, socket.socket(socket.AF_UNIX) as s:
        own.bind(os.path.join(folder, "s")); own.listen(); s.connect(os.path.join(folder, "s"))
        print("connected")
"""
READ = """
import json
read = []
for path in {paths}:
    try: open(path, "rb").read(1); read.append(path)
    except OSError: pass
print(json.dumps(read))
"""
SET_ID = """
import ctypes, json, os, platform
libc = ctypes.CDLL(None, use_errno=True)
x86 = platform.machine() == "x86_64"
def raw(*args):
    if libc.syscall(*args) < 0: raise OSError(ctypes.get_errno(), "")
def made(name): open(name, "w").close(); return name
def opened(name): return os.open(name, os.O_CREAT | os.O_RDWR, 0o755)
os.umask(0)
tries = {}
for bit in (0o4000, 0o2000):
    def add(name, attack, bit=bit): tries[f"{name} {bit:o}"] = lambda: attack(bit | 0o755)
    add("chmod", lambda mode: os.chmod(made("a"), mode))
    add("fchmod", lambda mode: os.fchmod(opened("b"), mode))
    add("fchmodat", lambda mode: raw(268 if x86 else 53, -100, made("c").encode(), mode))
    add("fchmodat2", lambda mode: raw(452, -100, made("d").encode(), mode, 0))
    add("open", lambda mode: os.open(f"e{mode}", os.O_CREAT | os.O_WRONLY, mode))
    add("open a nameless file", lambda mode: os.open(".", os.O_TMPFILE | os.O_RDWR, mode))
    add("mknod", lambda mode: os.mknod(f"f{mode}", mode | 0o100000))
    add("mknodat", lambda mode: os.mknod(f"g{mode}", mode | 0o100000, dir_fd=os.open(".", os.O_RDONLY)))
    add("a directory", lambda mode: os.chmod(os.makedirs(f"h{mode}") or f"h{mode}", mode))
    if x86:
        add("creat", lambda mode: raw(85, f"i{mode}".encode(), mode))
        add("old open", lambda mode: raw(2, f"j{mode}".encode(), os.O_CREAT | os.O_WRONLY, mode))
    add("openat2", lambda mode: raw(437, -100, b"k", (ctypes.c_uint64 * 3)(os.O_CREAT | os.O_WRONLY, mode, 0), 24))
done = []
for name, attack in tries.items():
    try: attack(); done.append(name)
    except OSError: pass
os.chmod(made("l"), 0o1777); os.chmod("l", 0o640); os.close(os.open("l", os.O_RDONLY, 0o6777))
print(json.dumps(done))
"""


class SystemFiles(unittest.TestCase):
    def start(self, without="", **confine):
        self.work = tempfile.mkdtemp(prefix="system-", dir="/var/tmp")
        self.addCleanup(shutil.rmtree, self.work, True)
        host = Host(env={"TROUPE_CONFINE_WITHOUT": without})
        self.addCleanup(host.stop)
        return host.open({}, cwd=self.work, confine=confine)

    def listen(self):
        """Sockets that are open to everybody, wherever this user can make one."""
        paths = []
        for place in PLACES:
            try:
                folder = tempfile.mkdtemp(prefix="socket-", dir=place)
            except OSError:
                continue
            self.addCleanup(shutil.rmtree, folder, True)
            os.chmod(folder, 0o755)
            listener = socket.socket(socket.AF_UNIX)
            self.addCleanup(listener.close)
            listener.bind(os.path.join(folder, "s"))
            listener.listen()
            os.chmod(os.path.join(folder, "s"), 0o666)
            paths.append(os.path.join(folder, "s"))
        self.assertNotEqual(paths, [])
        return paths

    @unittest.skipUnless(detect().namespaces, "no namespaces here")
    def test_sockets_of_other_programs_are_out_of_reach(self):
        paths = self.listen()
        for without in ("", "landlock", "seccomp"):
            kernel = self.start(without)
            self.assertEqual(json.loads(kernel.scratchpad(CONNECT.format(paths=paths)).printed), [])

    @unittest.skipUnless(detect().namespaces, "no namespaces here")
    def test_a_folder_that_was_opened_for_reading_is_there_with_its_sockets(self):
        first, *others = self.listen()
        kernel = self.start(read=[os.path.dirname(first)])
        self.assertEqual(json.loads(kernel.scratchpad(CONNECT.format(paths=[first, *others])).printed), [first])

    def test_a_kernel_has_sockets_of_its_own(self):
        for without in ("", "namespaces"):
            self.assertEqual(self.start(without).scratchpad(OWN_SOCKET).printed, "connected\n" * 2)

    def test_rights_that_this_version_of_landlock_lacks_are_not_requested(self):
        self.assertEqual([bin(landlock.find_rights(abi)).count("1") for abi in (1, 2, 3, 4, 5, 8, 9, 12)],
                         [13, 14, 15, 15, 16, 16, 17, 17])  # fmt: skip

    def test_system_configuration_that_is_not_world_readable_cannot_be_read(self):
        closed = [path for path in ("/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/root/.bashrc", "/root/.profile")
                  if os.path.exists(path) and not os.stat(path).st_mode & 0o004 or path.startswith("/root")]
        openly = ["/etc/passwd", "/etc/hosts", "/etc/ssl/openssl.cnf", "/etc/os-release"]
        for without in ("", "namespaces"):
            kernel = self.start(without)
            paths = closed + [path for path in openly if os.path.exists(path)]
            read = json.loads(kernel.scratchpad(READ.format(paths=paths)).printed)
            self.assertEqual(read, [path for path in openly if os.path.exists(path)])

    @unittest.skipUnless(os.geteuid() == 0, "only root adds to the configuration of the system")
    def test_a_secret_that_is_added_later_is_hidden_from_the_next_kernels(self):
        folder = tempfile.mkdtemp(prefix="troupe-test-", dir="/etc")
        self.addCleanup(shutil.rmtree, folder, True)
        os.chmod(folder, 0o755)
        self.start()
        host = Host()
        self.addCleanup(host.stop)
        host.open({}, cwd=self.work, confine={}).end()
        paths = [os.path.join(folder, name) for name in ("secret", "known")]
        for path, mode in zip(paths, (0o600, 0o644)):
            with open(path, "w", encoding="ascii") as file:
                file.write("x")
            os.chmod(path, mode)
        # the first of them may be one that waited before the secret was there
        kernels = [host.open({}, cwd=self.work, confine={}) for _ in range(2)]
        read = json.loads(kernels[1].scratchpad(READ.format(paths=paths)).printed)
        self.assertEqual(read, paths[1:])

    @unittest.skipUnless(os.geteuid() == 0, "only root adds to the configuration of the system")
    def test_a_file_that_was_closed_stays_closed_to_kernels_when_its_mode_and_times_are_changed(self):
        folder = tempfile.mkdtemp(prefix="troupe-test-", dir="/etc")
        self.addCleanup(shutil.rmtree, folder, True)
        os.chmod(folder, 0o755)
        paths = [os.path.join(folder, name) for name in ("secret", "known", "later")]
        for path, mode in zip(paths, (0o600, 0o644)):
            with open(path, "w", encoding="ascii") as file:
                file.write("x")
            os.chmod(path, mode)
        self.start()
        host = Host(env={"TROUPE_CONFINE_WITHOUT": "namespaces"})
        self.addCleanup(host.stop)
        host.open({}, cwd=self.work, confine={}).end()
        before = os.stat(folder)
        os.chmod(paths[0], 0o644)
        with open(paths[2], "w", encoding="ascii") as file:
            file.write("x")
        os.chmod(paths[2], 0o600)
        os.utime(folder, ns=(before.st_atime_ns, before.st_mtime_ns))
        kernel = host.open({}, cwd=self.work, confine={})
        self.assertEqual(json.loads(kernel.scratchpad(READ.format(paths=paths)).printed), paths[1:2])

    @unittest.skipUnless(os.geteuid() == 0, "only root's kernels could read the configuration that is closed to others")
    def test_where_notebook_code_can_change_modes_only_the_configuration_that_programs_need_is_open(self):
        file, path = tempfile.mkstemp(prefix="troupe-test-", dir="/etc")
        self.addCleanup(os.unlink, path)
        os.write(file, b"x")
        os.close(file)
        self.start()
        host = Host(env={"TROUPE_CONFINE_WITHOUT": "namespaces,seccomp"})
        self.addCleanup(host.stop)
        self.assertIn("files of this user can be chmod-ed", host.hello["confinement"])
        host.open({}, cwd=self.work, confine={}).scratchpad(f"import os; os.chmod({path!r}, 0o644)")
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o644)
        kernel = host.open({}, cwd=self.work, confine={})
        paths = [path, "/etc/passwd", "/etc/hosts"]
        self.assertEqual(json.loads(kernel.scratchpad(READ.format(paths=paths)).printed), paths[1:])

    def test_a_kernel_cannot_create_a_set_id_file_that_outlives_it(self):
        for without in ("", "namespaces"):
            kernel = self.start(without)
            self.assertEqual(json.loads(kernel.scratchpad(SET_ID).printed or "null"), [])
            modes = [os.lstat(os.path.join(at, name)).st_mode for at, folders, names in os.walk(self.work)
                     for name in (*folders, *names)]  # fmt: skip
            self.assertNotEqual(modes, [])
            self.assertEqual([mode for mode in modes if mode & (stat.S_ISUID | stat.S_ISGID)], [])

    @unittest.skipUnless(detect().namespaces, "no namespaces here")
    def test_files_in_tmp_are_limited_in_number_as_well(self):
        code = (
            "import os\nfor folder in ('/tmp', '/dev/shm'):\n    os.chdir(folder)\n    try:\n"
            "        for number in range(50_000): os.close(os.open(str(number), os.O_CREAT))\n"
            "    except OSError as error: print(error.errno, number < 20_000)"
        )
        self.assertEqual(self.start().scratchpad(code).printed, "28 True\n" * 2)

    def test_a_link_left_in_place_of_the_folder_for_temporary_files_is_not_followed(self):
        elsewhere = tempfile.mkdtemp(prefix="elsewhere-", dir="/var/tmp")
        self.addCleanup(shutil.rmtree, elsewhere, True)
        host = Host(env={"TROUPE_CONFINE_WITHOUT": "namespaces"})
        self.addCleanup(host.stop)
        for leave in (lambda path: os.symlink(elsewhere, path), lambda path: open(path, "w").close()):
            with tempfile.TemporaryDirectory(prefix="system-", dir="/var/tmp") as work:
                leave(os.path.join(work, ".tmp"))
                kernel = host.open({}, cwd=work, confine={})
                code = (
                    f"import tempfile\ntry: open({elsewhere + '/made'!r}, 'w')\n"
                    "except PermissionError: print(tempfile.NamedTemporaryFile().write(b'x'))"
                )
                self.assertEqual(kernel.scratchpad(code).printed, "1\n")
                kernel.end()
        self.assertEqual(os.listdir(elsewhere), [])

    def test_a_path_is_mounted_after_the_folder_that_contains_it_for_every_name(self):
        steps = views.plan({"/a", "/a-b", "/c"}, {"/a/x", "/c/y"})
        self.assertEqual([path for path, _ in steps], ["/a", "/a/x", "/a-b", "/c", "/c/y"])
        self.assertEqual(views.find_bare(steps, {"/a", "/a-b", "/c"}), ["/a-b"])


if __name__ == "__main__":
    unittest.main()
