"""What of the disk a kernel sees when hidden, readable and writable paths lie in each other, whose its files are, and
how many processes it may have."""

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
        """What came of reading, or with "w" of writing, each of these paths."""
        attempts = [(self.at(path), *mode) for path, *mode in attempts]
        return json.loads(kernel.scratchpad(TRY.format(attempts=attempts)).printed)

    def test_a_variable_makes_no_kernel_open_a_file_before_it_is_confined(self):
        for without in ("", "landlock", "namespaces", "seccomp"):
            with self.subTest(without=without):
                host, _ = self.start(without)
                os.mkfifo(self.at("shared/inner/zone"))  # who opens it waits for a writer
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

    def test_of_a_home_directory_or_tmp_only_the_python_environment_in_it_can_be_read(self):
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
