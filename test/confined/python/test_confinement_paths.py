# tier: whole, because it attacks the confinement of kernels
"""A kernel's view of the disk when hidden, readable and writable paths lie in each other, the owner of its files, and the number
of its processes."""

import glob
import json
import os
import shutil
import stat
import subprocess
import sysconfig
import tempfile
import unittest
import venv

from support import HOST, Host

from confinement import views  # isort: skip

NOBODY = 65534
DEVICES = {"null", "zero", "full", "random", "urandom", "tty"}
# which files of /proc, /sys and /dev a kernel can open to write that are not its own, and which that only root may read
MACHINE = """
import json, os, stat
def opens(path, how):
    try: os.close(os.open(path, how | os.O_NONBLOCK | os.O_NOCTTY)); return True
    except OSError: return False
found = [path for path in ("/dev/kmsg", "/dev/mem", "/dev/vda", "/dev/sda", "/proc/kcore") if opens(path, os.O_RDONLY)]
for top in ("/proc", "/sys"):
    for folder, folders, files in os.walk(top):
        if folder == "/proc": folders[:] = [name for name in folders if not name.isdigit() and name not in ("self", "thread-self")]
        if folder == "/sys": folders[:] = [name for name in folders if name in ("kernel", "fs", "power", "firmware")]
        for path in (os.path.join(folder, name) for name in files):
            try: mode = os.lstat(path).st_mode
            except OSError: continue
            if stat.S_ISREG(mode) and mode & 0o200 and opens(path, os.O_WRONLY): found.append(path)
            if top == "/proc" and folder == top and not mode & 0o004 and opens(path, os.O_RDONLY): found.append(path)
print(json.dumps({"open": found, "devices": os.listdir("/dev")}))
"""
TERMINAL = """
import os, pty, subprocess
ours, theirs = pty.openpty()
os.write(ours, b"typed\\n")
typed = os.read(theirs, 10).decode().strip()
shell = subprocess.run("echo shell > /dev/null; echo shell > /dev/stdout", shell=True, capture_output=True, text=True).stdout.strip()
print(typed, shell, os.ttyname(theirs).startswith("/dev/pts/"), len(open("/dev/urandom", "rb").read(4)), os.path.isdir("/dev/fd"), sep=",")
"""
ALL_TERMINALS = """
import os
opened = []
try:
    while len(opened) < 1_000: opened += os.openpty()
except OSError: pass
print(len(opened) // 2)
"""
GROUPS = """
import os
print([name for _, names, _ in os.walk("/sys/fs/cgroup") for name in names if name.startswith("troupe-{zygote}-")])
"""
USE_ENVIRONMENT = """
import json, subprocess, sys
import mine
run = subprocess.run([sys.executable, "-c", "import mine; print(mine.value)"], capture_output=True, text=True)
try: secret = open({secret!r}).read()
except OSError as error: secret = type(error).__name__
print(json.dumps([sys.executable, mine.value, int(run.stdout or 0), secret]))
"""
TRY = """
import json
def text(path, mode="r"):
    try:
        with open(path, mode) as file: return file.read() if mode == "r" else file.write("x")
    except OSError as error: return type(error).__name__
print(json.dumps([text(*one) for one in {attempts}]))
"""


def make_environment(folder):
    """Makes a virtual environment with our packages and a module of its own. Returns its Python."""
    venv.create(folder, with_pip=False, symlinks=True)
    python = os.path.join(folder, "bin", "python")
    (site,) = glob.glob(os.path.join(folder, "lib", "python*", "site-packages"))
    with open(os.path.join(site, "ours.pth"), "w", encoding="utf-8") as file:
        file.write(sysconfig.get_path("purelib") + "\n")
    with open(os.path.join(site, "mine.py"), "w", encoding="utf-8") as file:
        file.write("value = 1\n")
    return python


class Paths(unittest.TestCase):
    def start(self, without="", **confine):
        """A server's folders outside of everything that is covered anyway, and a kernel among them."""
        self.base = os.path.realpath(tempfile.mkdtemp(prefix="paths-", dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, self.base, True)
        os.chmod(self.base, 0o755)
        for path in ("data/work", "shared/inner", "scratch"):
            os.makedirs(os.path.join(self.base, path))
        for path in ("shared/open", "shared/keyring.json", "shared/inner/secret", "data/store", "scratch/old"):
            with open(os.path.join(self.base, path), "w", encoding="ascii") as file:
                file.write("kept")
        host = Host(env={"TROUPE_CONFINE_WITHOUT": without, "TROUPE_CONFINEMENT": confine.pop("env", "{}")})
        self.addCleanup(host.stop)
        hidden = [self.at(path) for path in ("data", "shared/keyring.json", "shared/inner")]
        confine = {"hidden": hidden, "read": [self.at("shared")], "write": [self.at("scratch")], **confine}
        return host, host.open({}, cwd=self.at("data/work"), confine=confine)

    def at(self, path):
        return os.path.join(self.base, path)

    def tried(self, kernel, *attempts):
        """Returns the result of reading, or with "w" of writing, each of these paths."""
        attempts = [(self.at(path), *mode) for path, *mode in attempts]
        return json.loads(kernel.scratchpad(TRY.format(attempts=attempts)).printed)

    @unittest.skipUnless(os.geteuid() == 0, "the files are root's, whom this user is not")
    def test_a_kernel_of_root_changes_nothing_of_the_machine_and_sees_no_devices(self):
        for without in ("", "landlock", "seccomp"):
            with self.subTest(without=without):
                host, kernel = self.start(without)
                found = json.loads(kernel.scratchpad(MACHINE).printed)
                self.assertEqual(found["open"], [])
                self.assertEqual(set(found["devices"]), {*DEVICES, "pts", "shm", "ptmx", "fd", "stdin", "stdout", "stderr"})
                self.assertRegex(host.hello["confinement"], r"Landlock \d|no Landlock: what only root may read below")

    def test_a_kernel_has_the_devices_and_terminals_that_programs_need(self):
        for without in ("", "landlock"):
            with self.subTest(without=without):
                _, kernel = self.start(without)
                self.assertEqual(kernel.scratchpad(TERMINAL).printed, "typed,shell,True,4,True\n")

    def test_a_kernel_cannot_take_all_terminals_of_the_machine(self):
        _, kernel = self.start()
        self.assertEqual(kernel.scratchpad(ALL_TERMINALS).printed, "64\n")

    def test_a_kernel_does_not_see_how_much_memory_others_use(self):
        host, first = self.start()
        confine = {"hidden": [self.at("data")]}
        second = host.open({}, cwd=self.at("data/work"), memory=1 << 30, confine=confine)
        third = host.open({}, cwd=self.at("data/work"), memory=1 << 30, confine=confine)  # from a spare, perhaps
        for kernel in (second, third):
            self.assertEqual(kernel.scratchpad(GROUPS.format(zygote=host.hello["pid"])).printed, "[]\n")

    def test_a_variable_makes_no_kernel_open_a_file_before_it_is_confined(self):
        for without in ("", "landlock", "namespaces", "seccomp"):
            with self.subTest(without=without):
                host, _ = self.start(without)
                os.mkfifo(self.at("shared/inner/zone"))  # opening it waits for a writer
                confine = {"hidden": [self.at("shared/inner")], "read": [self.at("shared")]}
                kernel = host.open({}, cwd=self.at("data/work"), env={"TZ": ":" + self.at("shared/inner/zone")}, confine=confine)
                self.assertEqual(kernel.evaluate("__import__('os').environ['TZ'][0]"), ":")

    def test_hidden_files_and_folders_stay_hidden_inside_readable_folders(self):
        for without in ("", "landlock", "namespaces", "seccomp"):
            with self.subTest(without=without):
                _, kernel = self.start(without)
                seen = self.tried(
                    kernel,
                    ("shared/open",),
                    ("shared/keyring.json",),
                    ("shared/inner/secret",),
                    ("data/store",),
                    ("shared/new", "w"),
                    ("scratch/new", "w"),
                    ("data/work/new", "w"),
                )
                self.assertEqual((seen[0], seen[5:]), ("kept", [1, 1]))
                for result in seen[1:5]:
                    self.assertIn(result, ("PermissionError", "FileNotFoundError", "OSError"))
                self.assertTrue(os.path.exists(self.at("data/work/new")))

    def test_a_hidden_file_that_is_replaced_while_a_kernel_runs_stays_hidden(self):
        _, kernel = self.start()
        with open(self.at("shared/draft"), "w", encoding="ascii") as file:
            file.write("secret")
        os.rename(self.at("shared/draft"), self.at("shared/keyring.json"))
        self.assertEqual(self.tried(kernel, ("shared/keyring.json",)), ["PermissionError"])

    def test_of_a_home_directory_or_tmp_only_the_python_environment_in_it_is_readable(self):
        for place in (os.path.expanduser("~"), "/tmp"):
            for without in ("", "landlock", "namespaces"):
                with self.subTest(place=place, without=without):
                    self.try_environment_in(place, without)

    def try_environment_in(self, place, without):
        folder = tempfile.mkdtemp(prefix="troupe-python-", dir=place)
        self.addCleanup(shutil.rmtree, folder, True)
        with open(os.path.join(folder, "secret"), "w", encoding="ascii") as file:
            file.write("kept")
        python = make_environment(os.path.join(folder, "env"))
        host = Host(env={"TROUPE_CONFINE_WITHOUT": without}, python=python)
        self.addCleanup(host.stop)
        with tempfile.TemporaryDirectory(prefix="work-", dir="/var/tmp") as work:
            kernel = host.open({}, cwd=work, confine={})
            seen = json.loads(kernel.scratchpad(USE_ENVIRONMENT.format(secret=os.path.join(folder, "secret"))).printed)
            self.assertEqual(seen[:3], [python, 1, 1])
            self.assertNotEqual(seen[3], "kept")
            kernel.end()

    @unittest.skipUnless(os.getuid() == 0, "only root mounts")
    def test_kernels_do_not_keep_file_systems_busy_that_are_unmounted_and_do_not_see_later_mounts(self):
        base = os.path.realpath(tempfile.mkdtemp(prefix="mounts-", dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, base, True)
        host = Host(parent=("unshare", "--mount", "--propagation", "shared"))
        self.addCleanup(host.stop)

        def in_its_namespace(*command):
            subprocess.run(["nsenter", "--mount", "--target", str(host.process.pid), *command], check=True)

        early, late = [os.path.join(base, name) for name in ("early", "late")]
        for folder in (early, late):
            os.mkdir(folder)
        in_its_namespace("mount", "-t", "tmpfs", "early", early)
        kernel = host.open({}, confine={})
        mounts = 'open("/proc/self/mountinfo").read()'
        self.assertIn(early, kernel.evaluate(mounts))
        in_its_namespace("umount", early)
        self.assertNotIn(early, kernel.evaluate(mounts))
        in_its_namespace("mount", "-t", "tmpfs", "late", late)
        in_its_namespace("sh", "-c", f"echo kept > {late}/secret")
        attempts = [(f"{late}/secret",), (f"{late}/new", "w")]
        for result in json.loads(kernel.scratchpad(TRY.format(attempts=attempts)).printed):
            self.assertIn(result, ("PermissionError", "FileNotFoundError"))

    def test_paths_that_do_not_exist_are_skipped(self):
        _, kernel = self.start(read=["/no/such/path"], write=["/nor/this"], hidden=["/nor/that"])
        self.assertEqual(kernel.evaluate("1 + 1"), 2)

    def test_a_path_inside_a_mounted_one_is_not_mounted_again(self):
        covers, kept = {"/tmp", "/home/u", "/tmp/data"}, {"/home/u/py", "/tmp/data/work", "/usr"}
        self.assertEqual(
            views.plan(covers | {"/home/u/py/secret"}, kept),
            [("/home/u", True), ("/home/u/py", False), ("/home/u/py/secret", True), ("/tmp", True)]
            + [("/tmp/data/work", False)],
        )

    @unittest.skipUnless(os.geteuid() == 0, "only root can change its user")
    def test_kernels_of_a_root_server_run_as_the_configured_user_and_own_their_files(self):
        if not os.stat(os.path.dirname(HOST)).st_mode & stat.S_IXOTH:
            self.skipTest("this checkout is closed to others")
        host, kernel = self.start(env=f'{{"uid": {NOBODY}}}', uid=NOBODY)
        self.assertIn(f"uid {NOBODY}", host.hello["confinement"])
        self.assertEqual(kernel.evaluate("__import__('os').getresuid()"), [NOBODY] * 3)
        self.assertEqual(self.tried(kernel, ("data/work/new", "w"), ("data/store",)), [1, "FileNotFoundError"])
        self.assertEqual(os.stat(self.at("data/work/new")).st_uid, NOBODY)
        again = host.open({}, cwd=self.at("data/work"), confine={"hidden": [self.at("data")]})
        self.assertEqual(self.tried(again, ("data/work/new", "w")), [1])
        self.assertEqual(os.stat(self.at("data/work/new")).st_uid, 0)

    @unittest.skipUnless(os.geteuid() == 0, "only root can change its user")
    def test_a_user_that_kernels_cannot_run_as_is_reported_and_not_used(self):
        host, kernel = self.start("namespaces", env=f'{{"uid": {NOBODY}}}', uid=NOBODY)
        self.assertRegex(host.hello["confinement"], f"^partial: .*kernels do not run as uid {NOBODY} \\(there are no")
        self.assertEqual(kernel.evaluate("__import__('os').getuid()"), 0)

    def test_processes_of_one_session_are_limited(self):
        code = (
            "import os, time, warnings\nwarnings.simplefilter('ignore')\n"  # of Python 3.12 and later, about threads
            "born = []\nwhile len(born) < 900:\n    try: pid = os.fork()\n"
            "    except OSError as error: print(type(error).__name__, len(born) < 600); break\n"
            "    if pid == 0: time.sleep(60); os._exit(0)\n    born.append(pid)\n"
            "for pid in born: os.kill(pid, 9); os.waitpid(pid, 0)"
        )
        _, kernel = self.start(processes=64)
        self.assertEqual(kernel.scratchpad(code).printed.strip(), "BlockingIOError True")


if __name__ == "__main__":
    unittest.main()
