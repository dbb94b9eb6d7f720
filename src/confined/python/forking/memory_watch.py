"""The memory watch: a process that reports to the zygote the kernels above their memory limit, where no control group
counts it. The zygote starts it with the first such kernel, and again if it ends.

    to the watch    key, pid, limit and size of /tmp and /dev/shm; a limit of 0 means that the process has ended. Processes
                    with one key are counted together
    from the watch  the key of a kernel that is above its limit

It measures a kernel only after the machine has allocated as much memory as that kernel had left at its last
measurement. Before that, the kernel cannot be above its limit. So kernels that are idle, or far below their limit,
cost one short read a second. A kernel that goes above its limit is reported after at most MAX_PAUSE_S and one look at
all kernels.

A measurement adds up cheap counters, which count shared memory once for each process. Only when their sum is above
the limit, it asks the system for the real use of the kernel. For that, the system walks the page tables, which takes
some 15 ms for each GiB.
"""

import os
import re
import select
import signal
import socket
import struct
import time
import traceback

import processes
from confinement import descriptors

MESSAGE = struct.Struct("<QiQQ")
KEY = struct.Struct("<Q")
MIN_PAUSE_S, MAX_PAUSE_S = 0.1, 1.0
GROWTH_PER_S = 2 << 30  # faster growth is found at the next look, after at most MAX_PAUSE_S
LOOKING_SHARE = 0.1  # the largest share of the time, as long as pauses are shorter than MAX_PAUSE_S
PAGE, KIB, INODE = os.sysconf("SC_PAGE_SIZE"), 1024, 1024
CHEAP = re.compile(rb"^(?:RssAnon|RssShmem|VmPTE|VmSwap|HugetlbPages):\s+(\d+) kB$", re.MULTILINE)
EXACT = re.compile(rb"^(?:Pss_Anon|Pss_Shmem|SwapPss|Private_Hugetlb):\s+(\d+) kB$", re.MULTILINE)
MAPPING = re.compile(
    rb"^[0-9a-f]+-[0-9a-f]+ \S+ [0-9a-f]+ ([0-9a-f]+):([0-9a-f]+) .*\n(?:[^\n-]*\n)*?"
    rb"Pss:\s+(\d+) kB\n(?:[^\n-]*\n)*?Anonymous:\s+(\d+) kB$",
    re.MULTILINE,
)
GIVEN_OUT = re.compile(rb"^pgalloc\w+ (\d+)$", re.MULTILINE)


class MemoryWatch:
    """The zygote's side of the memory watch."""

    def __init__(self, leave):
        """Forks. In the child, `leave` gives up the zygote's signals and streams. Raises OSError when it cannot fork."""
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.setblocking(False)
        try:
            self.pid = os.fork()
        except OSError:
            self.socket.close()
            theirs.close()
            raise
        if self.pid == 0:
            run(theirs, leave)
        theirs.close()

    def add(self, key: int, pid: int, limit: int, tmp_bytes: int):
        """Watches a kernel, or its init, with a /tmp and a /dev/shm of `tmp_bytes` each. For a
        kernel without init, `tmp_bytes` is 0.
        """
        self._tell(key, pid, limit, tmp_bytes)

    def forget(self, key: int, pid: int):
        self._tell(key, pid, 0, 0)

    def _tell(self, *fields):
        try:
            self.socket.send(MESSAGE.pack(*fields))
        except BlockingIOError:  # the watch has not read messages about hundreds of kernels: another one replaces it
            processes.kill_tree(self.pid)
        except OSError:  # the watch has ended, and is started again when it is reaped
            pass

    def exceeded(self):
        """Yields the keys of kernels that are above their limit."""
        try:
            while said := self.socket.recv(KEY.size):
                yield KEY.unpack(said)[0]
        except OSError:  # there is nothing to read at present, or the watch has ended
            return

    def close(self):
        self.socket.close()


class Kernel:
    """The watch's record of one kernel, or of processes that share one limit."""

    def __init__(self, limit, given_out):
        self.limit = limit
        self.members = {}  # pid -> size of its /tmp and of its /dev/shm
        self.room = limit // 2  # the process has just started
        self.looked_at = given_out  # how much memory the machine had allocated when `room` was counted
        self.is_told = False

    def add(self, pid, tmp_bytes):
        if self.members:
            self.room, self.is_told = 0, False  # no room, so the next look measures this process
        self.members[pid] = tmp_bytes


def run(sock, leave):
    """Runs the watch; never returns."""
    try:
        leave()
        descriptors.close_all_but(sock.fileno())
        processes.call_this("watch")
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        Watching(sock).serve()
    except BaseException:
        traceback.print_exc()
        time.sleep(MAX_PAUSE_S)  # the watch is started again at once
    finally:
        os._exit(70)


class Watching:
    """The loop of the watch."""

    def __init__(self, sock):
        self.socket = sock
        self.kernels = {}
        self.poll = select.poll()
        self.poll.register(sock, select.POLLIN)
        try:
            self.counters = os.open("/proc/vmstat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # some sandboxes lack this file
            self.counters = None

    def serve(self):
        pause = 0.0
        while True:
            if self.poll.poll(pause * 1000 if self.kernels else None):
                self.listen()
            started_at = time.monotonic()
            self.look_where_needed()
            took = time.monotonic() - started_at
            rooms = [kernel.room for kernel in self.kernels.values() if not kernel.is_told]
            wanted = max(min(rooms, default=0) / GROWTH_PER_S, took / LOOKING_SHARE)
            pause = min(max(wanted, MIN_PAUSE_S), MAX_PAUSE_S)

    def listen(self):
        said = self.socket.recv(MESSAGE.size)
        if not said:
            os._exit(0)  # the zygote is gone
        key, pid, limit, tmp_bytes = MESSAGE.unpack(said)
        if limit:
            if key not in self.kernels:
                self.kernels[key] = Kernel(limit, self.given_out() or 0)
            self.kernels[key].add(pid, tmp_bytes)
        elif kernel := self.kernels.get(key):
            kernel.members.pop(pid, None)
            if not kernel.members:
                del self.kernels[key]

    def given_out(self) -> int | None:
        """Returns the bytes that this machine has allocated since it started; None when not known."""
        if self.counters is None:
            return None
        pages = GIVEN_OUT.findall(os.pread(self.counters, 1 << 16, 0))
        return sum(map(int, pages)) * PAGE if pages else None

    def look_where_needed(self):
        given_out = self.given_out()
        for key, kernel in self.kernels.items():
            if kernel.is_told or (given_out is not None and given_out - kernel.looked_at < kernel.room):
                continue
            kernel.looked_at = given_out or 0
            kernel.room = max(0, kernel.limit - count(kernel))
            if kernel.room == 0:
                kernel.is_told = True
                self.socket.send(KEY.pack(key))


def count(kernel) -> int:
    """Returns the bytes that a kernel uses: an upper bound as long as that is below the limit,
    otherwise the exact number.
    """
    used, found = 0, []
    for member, tmp_bytes in kernel.members.items():
        pids = processes.descendants(member)
        if not tmp_bytes:
            pids.append(member)
        kept, devices = count_kept(pids, tmp_bytes) if tmp_bytes else (0, set())
        found.append((pids, kept, devices))
        used += kept + sum(count_cheaply(pid) for pid in pids)
    if used < kernel.limit:
        return used
    return sum(kept + sum(count_exactly(pid, devices) for pid in pids) for pids, kept, devices in found)


def count_cheaply(pid) -> int:
    """Returns a lower bound of the memory that a process uses. Files are not counted: the system takes their memory
    back."""
    return sum(map(int, CHEAP.findall(read(f"/proc/{pid}/status")))) * KIB


def count_exactly(pid, devices) -> int:
    """Returns the share of memory that counts for a process, without its mappings of files on
    `devices`. A process whose details cannot be read is counted cheaply."""
    rollup = read(f"/proc/{pid}/smaps_rollup")
    if not rollup:
        return count_cheaply(pid)
    used = sum(map(int, EXACT.findall(rollup)))
    if devices:
        for major, minor, share, anonymous in MAPPING.findall(read(f"/proc/{pid}/smaps")):
            if os.makedev(int(major, 16), int(minor, 16)) in devices:
                used -= max(0, int(share) - int(anonymous))
    return used * KIB


def count_kept(pids, tmp_bytes) -> tuple[int, set[int]]:
    """Returns the size of the files in a session's /tmp and /dev/shm, and their devices. If no
    process allows reading them, they count as full."""
    for pid in pids:
        try:
            folders = [f"/proc/{pid}/root{path}" for path in ("/tmp", "/dev/shm")]
            found = [os.statvfs(folder) for folder in folders]
            devices = {os.stat(folder).st_dev for folder in folders}
        except OSError:
            continue
        kept = sum((of.f_blocks - of.f_bfree) * of.f_frsize + (of.f_files - of.f_ffree) * INODE for of in found)
        return kept, devices if kept > tmp_bytes // 16 else set()
    return (2 * tmp_bytes if pids else 0), set()


def read(path) -> bytes:
    """Returns the contents of a file; an empty string when it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
