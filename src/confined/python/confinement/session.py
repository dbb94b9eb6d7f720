"""The confinement of one session: applies the layers that this machine has, in their order, in the
process that becomes the kernel.
"""

import contextlib
import encodings.ascii  # noqa: F401  for files in /proc; loaded once here, not in each kernel
import os
import resource
import stat

import msgspec

from confinement import capabilities, landlock, modes, namespaces, ownership, seccomp, supervisor, views

WRITABLE_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty")
NETWORKS = ("open", "none", "least")


class Wanted(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The confinement part of an order."""

    hidden: list[str] = []  # the server's directories and files; the kernel's own directory may be inside of them
    read: list[str] = []  # additional paths that may be read
    write: list[str] = []  # additional paths that may be read and written
    # "none": only a loopback interface, or without namespaces no network at all; "least": "none" if
    # possible
    network: str = "open"
    uid: int | None = None  # the uid of the kernel, for a server that runs as root
    tmp_mb: int = 256  # size of /tmp and of /dev/shm
    processes: int | None = None  # most processes and threads at once; only namespaces make counting possible
    shield: list[int] = []  # further processes that may not be signalled, in addition to the server and the zygote

    def __post_init__(self):
        if self.network not in NETWORKS:
            raise ValueError(f"network is {' or '.join(NETWORKS)}")


def choose_network(network, found):
    if network != "least":
        return network
    return "none" if found.namespaces or found.seccomp else "open"


class Confinement:
    """The confinement of one process. Call order: fork() in the zygote; in its child settle() before anything else,
    then reach() and start(), which returns in the kernel; there finish(), before its first thread. The additions of
    reach() belong to one process, and the zygote does not know them."""

    def __init__(self, found, wanted, shield, no_held_memory=False, writes_files=True):
        """
        `no_held_memory`: the kernel may not keep memory that none of its processes maps, because such memory is not
        counted. `writes_files`: the process has to change modes and times of files; without namespaces it needs a
        supervisor for that.
        """
        self.found, self.wanted = found, wanted
        self.no_held_memory = no_held_memory
        self.network = choose_network(wanted.network, found)
        self.with_user = not found.root
        self.kernel_uid = wanted.uid if found.root and found.namespaces and found.uid_why is None else None
        self.work = None
        self.shield = {*shield, *wanted.shield}
        # Root owns most of the system, and the owner of a file can read it without any capability.
        self.is_owner = found.root and self.kernel_uid is None
        self.ruleset = None  # the Landlock rules that prepare() has made ahead of time
        self.own_group = None  # the folder of its control group
        self.variables = {}  # after finish(): variables that the kernel's environment must have
        self.hidden = real_paths(wanted.hidden)
        self.opened = real_paths(wanted.read)
        self.read = [*views.find_python(), *self.opened, *views.NEEDED, *views.find_resolver()]
        self.is_supervised = needs_supervisor(found, writes_files)
        self.supervisor = None  # the socket to the supervisor, between start() and finish()
        self.filter = self._choose_filter()
        self.write = real_paths(wanted.write)
        self.added, self.sockets, self.tcp_ports = [], [], None

    def reach(self, work=None, read=(), write=(), sockets=(), tcp_ports=None):
        """
        Adds paths and ports that this process may use: its working directory, other files and folders, and folders
        that are only for unix sockets. From Landlock 4 on, `tcp_ports` are the only ports to which it may connect.
        Without `work` and `write` nothing on the disk can be written.
        """
        self.added, self.sockets, self.tcp_ports = real_paths(read), real_paths(sockets), tcp_ports
        self.read += self.added
        if work is not None:
            self.work = os.path.realpath(work)
            self.write.insert(0, self.work)
        self.write += real_paths(write)

    def fork(self) -> int:
        """Forks. The child is the session's init where there are namespaces, otherwise the kernel itself."""
        if self.is_owner:
            self._find_configuration()  # the result is remembered here, so that children need not repeat it
        if self.found.namespaces:
            return namespaces.clone(self.with_user, with_network=self.network == "none")
        return os.fork()

    def settle(self):
        """Called in the child, before it asks for its ids or opens a file."""
        if self.found.namespaces:
            namespaces.settle_in(self.with_user, self.found.uid, self.found.gid)
        elif self.is_supervised:
            os.setsid()  # otherwise a signal for its child would reach the zygote, whose process group it is in

    def prepare(self):
        """Called in an init that has no order yet. Does the steps that are the same for all kernels with its policy.
        """
        views.find_bare(views.plan(views.find_covers(self.hidden, set(self.read)), set(self.read)), ())
        self.ruleset = self._allow_reading() if self.found.landlock else None

    def start(self, link, nice=0):
        """
        `link`: a pipe to the zygote, on which init or the supervisor reports how the kernel ended. `nice`: the
        niceness of the supervisor, which is that of the kernel.
        """
        found, wanted = self.found, self.wanted
        if self.network == "none" and not (found.namespaces or found.seccomp):
            raise RuntimeError("network none needs namespaces or seccomp: refusing to run with less")
        if found.root:
            for folder in (*([self.work] if self.work else []), *self.sockets):
                ownership.give(folder, self.kernel_uid or self.found.uid)
        if self.is_supervised:
            shared = ["/dev/shm"] if self.work else []
            places = modes.Places(self.write, shared, self.hidden, bool(found.landlock))
            self.supervisor = supervisor.fork_supervised(link, self.drop_privileges, places, nice)
        if not found.namespaces:
            return
        writable = [*self.write, *self.sockets]
        missing = views.build(
            self.hidden,
            self.read,
            writable,
            wanted.tmp_mb,
            follows_host=bool(found.landlock),
            of_root=views.OF_ROOT if found.root else (),
            own_group=self.own_group,
        )
        if wanted.processes is not None and found.counts_pids:
            namespaces.limit_pids(wanted.processes)
        if found.root and not missing:
            views.close_proc()
        if self.network == "none":
            namespaces.bring_loopback_up()
        namespaces.fork_kernel(link, self.drop_privileges)

    def drop_privileges(self):
        if self.kernel_uid is not None:
            capabilities.become(self.kernel_uid)
        elif self.found.root or self.found.namespaces:
            capabilities.drop_capabilities()

    def finish(self):
        """Confines the kernel for good. Call it when the kernel has opened everything that it
        needs from outside and is in its directory."""
        tmp = self._find_tmp()
        if self.found.namespaces and self.with_user and self.wanted.processes is not None:
            # Outside of a user namespace the limit would count every process of this user.
            resource.setrlimit(resource.RLIMIT_NPROC, (self.wanted.processes, self.wanted.processes))
        self.drop_privileges()
        capabilities.forbid_new_privileges()
        self._restrict_files(tmp)
        if self.supervisor:
            supervisor.hand_over(seccomp.restrict(self.filter, with_listener=True), self.supervisor)
        elif self.filter:
            seccomp.restrict(self.filter)

    def _find_tmp(self):
        """
        Returns the folders for temporary files outside of the working directory. Without namespaces /tmp is shared by
        all users, so the kernel gets a folder for temporary files in its working directory. Notebook code may have
        left a link or a file in the place of that folder. Such a link is not followed.
        """
        if not self.work:
            return []
        if self.found.namespaces:
            return ["/tmp", "/dev/shm"]
        tmp = os.path.join(self.work, ".tmp")
        with contextlib.suppress(FileExistsError):
            os.mkdir(tmp, mode=0o700)
        is_folder = stat.S_ISDIR(os.lstat(tmp).st_mode)
        self.variables["TMPDIR"] = tmp if is_folder else self.work
        return ["/dev/shm"]

    def _allow_reading(self):
        system = views.SYSTEM
        if self.is_owner:
            system = [path for path in system if path != views.CONFIGURATION] + self._find_configuration()
        ports = self._find_ports()
        ruleset = landlock.Ruleset(self.found.landlock, ports is not None)
        ruleset.allow(landlock.READ, self._but_hidden(*self.read, *system))
        ruleset.allow(landlock.CONNECT_TO_SOCKETS, self._but_hidden(*self.opened))
        ruleset.allow(landlock.WRITE | landlock.IOCTL_DEV, WRITABLE_DEVICES)
        ruleset.allow_ports(ports or ())
        return ruleset

    def _find_configuration(self):
        return views.find_configuration(self.found.namespaces or self.found.decides_modes)

    def _restrict_files(self, tmp):
        if not self.found.landlock:
            return
        ruleset = self.ruleset or self._allow_reading()
        ruleset.allow(landlock.READ, self._but_hidden(*self.added))
        ruleset.allow(landlock.CONNECT_TO_SOCKETS, self._but_hidden(*self.added))
        ruleset.allow(landlock.READ, ["/proc"])  # a session's own /proc differs from the earlier one
        if self.found.namespaces:
            ruleset.allow(landlock.READ, ["/dev"])
            ruleset.allow(landlock.READ | landlock.WRITE | landlock.IOCTL_DEV, ["/dev/pts"])
        ruleset.allow(landlock.WRITE, [*tmp, *self._but_hidden(*self.write)])
        ruleset.allow(landlock.SOCKETS, self.sockets)
        ruleset.enforce()

    def _find_ports(self):
        """Returns the TCP ports to which connections are allowed; None for all."""
        return [] if self.network == "none" and not self.found.namespaces else self.tcp_ports

    def _but_hidden(self, *paths):
        """When a hidden file is replaced, its cover is gone, so Landlock must not let the file be read, either.
        """
        return [one for path in paths for one in views.leave_out(self.hidden, path)]

    def _choose_filter(self):
        if not self.found.seccomp:
            return None
        weak = not self.found.namespaces
        return seccomp.build(
            shield=tuple(sorted(self.shield)) if weak else (),
            no_truncate=weak and self.found.landlock < 3,
            no_network=weak and self.network == "none",
            no_held_memory=self.no_held_memory,
            own_network=not weak and self.network == "none",
            modes=("decide" if self.is_supervised else "refuse") if weak and self.found.decides_modes else None,
        )


def needs_supervisor(found, writes_files: bool) -> bool:
    """Returns whether such a process has a supervisor on this machine."""
    return writes_files and not found.namespaces and found.decides_modes


def real_paths(paths) -> list[str]:
    return [os.path.realpath(path) for path in paths]
