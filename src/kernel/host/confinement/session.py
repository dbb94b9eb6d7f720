"""One session's confinement: the layers of this machine, in their order, in the process that becomes the kernel."""

import os
import sys
import tempfile

import msgspec

from confinement import capabilities, landlock, namespaces, seccomp, views

DEVICES = ("/dev/null", "/dev/zero", "/dev/full")
NETWORKS = ("open", "none")


class Wanted(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What an order says about confinement."""

    hidden: list[str] = []  # the server's directories; the kernel's own may lie inside
    read: list[str] = []  # what else may be read
    network: str = "open"  # "none": only a loopback of its own, or none at all without namespaces
    tcp_ports: list[int] | None = None  # from Landlock 4 on: the only ports to connect to
    uid: int | None = None  # of the kernel, for a server that is root
    tmp_mb: int = 256  # size of /tmp and of /dev/shm
    shield: list[int] = []  # more processes that may not be signalled; the server and the zygote always are

    def __post_init__(self):
        if self.network not in NETWORKS:
            raise ValueError(f"network is {' or '.join(NETWORKS)}")


class Confinement:
    """fork() in the zygote; in its child start(), which comes back in the kernel; there finish(), before its first
    thread."""

    def __init__(self, found, wanted, work, shield):
        self.found, self.wanted = found, wanted
        self.with_user = not found.root
        self.uid, self.gid = os.geteuid(), os.getegid()
        self.work = os.path.realpath(work)
        self.shield = {*shield, *wanted.shield}
        python = [sys.prefix, sys.base_prefix, sys.exec_prefix, *filter(os.path.isdir, sys.path)]
        self.read = [os.path.realpath(path) for path in dict.fromkeys([*python, *wanted.read])] + views.find_resolver()

    def fork(self) -> int:
        """The child is the session's init where there are namespaces, otherwise the kernel itself."""
        if self.found.namespaces:
            return namespaces.clone(self.with_user, with_network=self.wanted.network == "none")
        return os.fork()

    def start(self, link):
        """`link`: a pipe to the zygote, for init to say how the kernel ended."""
        found, wanted = self.found, self.wanted
        if wanted.network == "none" and not (found.namespaces or found.seccomp):
            raise RuntimeError("network none needs namespaces or seccomp: refusing to run with less")
        if not found.namespaces:
            return
        namespaces.settle_in(self.with_user, self.uid, self.gid)
        views.build([os.path.realpath(path) for path in wanted.hidden], self.read, [self.work], wanted.tmp_mb)
        if wanted.network == "none":
            namespaces.bring_loopback_up()
        namespaces.fork_kernel(link, self.drop_privileges)

    def drop_privileges(self):
        if self.found.root and self.wanted.uid:
            capabilities.become(self.wanted.uid)
        elif self.found.root or self.found.namespaces:
            capabilities.drop_capabilities()

    def finish(self):
        """Everything that the kernel needs from outside is open, and it is in its directory."""
        tmp = self._find_tmp()
        self.drop_privileges()
        capabilities.forbid_new_privileges()
        self._restrict_files(tmp)
        self._restrict_calls()

    def _find_tmp(self):
        """Without namespaces /tmp is everyone's."""
        if self.found.namespaces:
            return "/tmp"
        tmp = os.path.join(self.work, ".tmp")
        os.makedirs(tmp, mode=0o700, exist_ok=True)
        if self.found.root and self.wanted.uid:
            os.chown(tmp, self.wanted.uid, self.wanted.uid)
        os.environ["TMPDIR"] = tmp
        tempfile.tempdir = None
        return tmp

    def _restrict_files(self, tmp):
        found, wanted = self.found, self.wanted
        if not found.landlock:
            return
        rules = [(path, landlock.READ) for path in (*self.read, *views.SYSTEM)]
        rules += [(path, landlock.WRITE) for path in (self.work, tmp, "/dev/shm", *DEVICES)]
        ports = [] if wanted.network == "none" and not found.namespaces else wanted.tcp_ports
        landlock.restrict(found.landlock, rules, ports)

    def _restrict_calls(self):
        found, wanted = self.found, self.wanted
        if not found.seccomp:
            return
        weak = not found.namespaces
        program = seccomp.build(
            shield=sorted(self.shield) if weak else (),
            no_truncate=weak and found.landlock < 3,
            no_network=weak and wanted.network == "none",
            no_ptrace=weak and not found.landlock,
        )
        seccomp.restrict(program)
