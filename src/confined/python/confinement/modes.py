"""Modes, owners and times of files, where there are no namespaces.

Landlock does not cover chmod, chown and utime, so without a read-only view of the disk notebook code could change the
mode of every file of its user, those of the server included. The calls stop at seccomp's user notification instead:
an ancestor of the process (supervisor.py) opens the file, looks in which folder the opened file is, and makes the
change on its descriptor. So a path that changes after this look has no effect. Calls by descriptor are decided in the
same way, because Landlock lets a process open files for reading that it must not change.

The supervisor must be an ancestor: where Yama's ptrace_scope is 1, no other process may read the memory.
"""

import ctypes
import errno
import fcntl
import os
import stat
import struct
from contextlib import suppress
from typing import NamedTuple

from confinement.syscalls import MACHINE, NUMBERS, libc
from confinement.views import is_under

RECEIVE, SEND, IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
NOTIFICATION_BYTES = 80
AT_FDCWD, AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH = -100, 0x100, 0x1000
MAX_PATH_BYTES, PAGE = 4096, 4096
PERMISSIONS = 0o1777  # a mode without the bits of set-user-id and set-group-id, which the filter refuses
UNNAMED = (stat.S_ISFIFO, stat.S_ISSOCK)


class Call(NamedTuple):
    """A system call that changes a file: which argument is which."""

    change: str  # "mode", "owner" or "times"
    value: int  # the argument with the mode, the user (the group follows) or the address of the times
    path: int | None = None  # None: the descriptor in `at` is the file
    at: int | None = None  # a descriptor; without it the path begins at the working directory
    flags: int | None = None
    follows: bool = True  # whether a link at the end of the path is followed
    times: str = "timespec"


# every system call that changes a mode, an owner or times: the supervisor decides these calls
DECIDED = {
    "chmod": Call("mode", 1, path=0),
    "fchmod": Call("mode", 1, at=0),
    "fchmodat": Call("mode", 2, at=0, path=1),
    "fchmodat2": Call("mode", 2, at=0, path=1, flags=3),
    "chown": Call("owner", 1, path=0),
    "lchown": Call("owner", 1, path=0, follows=False),
    "fchown": Call("owner", 1, at=0),
    "fchownat": Call("owner", 2, at=0, path=1, flags=4),
    "utime": Call("times", 1, path=0, times="utimbuf"),
    "utimes": Call("times", 1, path=0, times="timeval"),
    "futimesat": Call("times", 2, at=0, path=1, times="timeval"),
    "utimensat": Call("times", 2, at=0, path=1, flags=3),
}
# system calls that change extended attributes and flags of files. They are always refused: programs continue without
# them
REFUSED = (
    "setxattr", "lsetxattr", "fsetxattr", "setxattrat", "removexattr", "lremovexattr", "fremovexattr", "removexattrat",
    "file_setattr",
)  # fmt: skip
# ioctls that change flags of a file which is only open for reading
REFUSED_IOCTLS = {
    "FS_IOC_SETFLAGS": 0x40086602, "FS_IOC32_SETFLAGS": 0x40046602, "FS_IOC_SETVERSION": 0x40087602,
    "FS_IOC32_SETVERSION": 0x40047602, "FS_IOC_FSSETXATTR": 0x401C5820, "FS_IOC_ENABLE_VERITY": 0x40806685,
    "FS_IOC_SET_ENCRYPTION_POLICY": 0x800C6613,
}  # fmt: skip
REFUSAL = errno.EOPNOTSUPP  # the error of a file system without attributes: tar, cp and Python ignore it
BY_NUMBER = {NUMBERS[name][MACHINE or 0]: call for name, call in DECIDED.items() if NUMBERS[name][MACHINE or 0] is not None}


class Places:
    """The folders in which changes are allowed."""

    def __init__(self, write, shared, hidden, has_landlock: bool):
        """
        All paths are real paths. `write`: folders that may be changed with everything in them. `shared`: folders
        whose contents may be changed; the folders themselves may not. `hidden`: exceptions from these. Where paths of
        different lists lie in each other, the innermost decides.
        """
        self.allowed = {**dict.fromkeys(write, True), **dict.fromkeys(shared, True), **dict.fromkeys(hidden, False)}
        self.shared = set(shared)
        self.has_landlock = has_landlock

    def allow(self, where: str, found: os.stat_result) -> bool:
        """Returns whether a file may be changed. `where`: its path, as /proc shows it for the descriptor."""
        if found.st_nlink == 0 or any(kind(found.st_mode) for kind in UNNAMED) and not where.startswith("/"):
            return True  # the file has no path any more
        if not where.startswith("/") or where in self.shared:
            return False
        if not self.has_landlock and not stat.S_ISDIR(found.st_mode) and found.st_nlink > 1:
            return False  # its second name may be in another folder: Landlock would have prevented such a link
        folders = [one for one in self.allowed if is_under(where, one)]
        return bool(folders) and self.allowed[max(folders, key=len)]


class Timespec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


class Asked:
    """A call that waits for its decision: `thread` made the call."""

    def __init__(self, data):
        self.key, self.thread, _ = struct.unpack_from("QII", data, 0)
        self.number, _, _, *self.arguments = struct.unpack_from("iIQ6Q", data, 16)

    def read(self, address: int, size: int) -> bytes:
        """Returns up to `size` bytes of its memory."""
        try:
            with open(f"/proc/{self.thread}/mem", "rb", buffering=0) as memory:
                return os.pread(memory.fileno(), size, address)
        except OverflowError:
            raise OSError(errno.EFAULT, "address") from None
        except OSError as error:
            raise OSError(errno.EFAULT if error.errno == errno.EIO else errno.EPERM, "memory") from None

    def read_path(self, address: int) -> bytes:
        found = b""
        while b"\0" not in found:
            if len(found) >= MAX_PATH_BYTES:
                raise OSError(errno.ENAMETOOLONG, "path")
            at = address + len(found)
            found += self.read(at, PAGE - at % PAGE) or b"\0"  # within one page: the next one may be missing
        return found.partition(b"\0")[0]

    def read_times(self, address: int, kind: str):
        """Returns two Timespecs, or None for the present."""
        if address == 0:
            return None
        if kind == "utimbuf":
            pairs = [(seconds, 0) for seconds in struct.unpack("qq", self.read(address, 16))]
        else:
            numbers = struct.unpack("qqqq", self.read(address, 32))
            pairs = [numbers[:2], numbers[2:]]
        if kind == "timeval":
            if not all(0 <= micros < 1_000_000 for _, micros in pairs):
                raise OSError(errno.EINVAL, "times")
            pairs = [(seconds, micros * 1000) for seconds, micros in pairs]
        return (Timespec * 2)(*(Timespec(*pair) for pair in pairs))

    def find(self, call: Call) -> int:
        """Returns an O_PATH descriptor of the file."""
        flags = as_int(self.arguments[call.flags]) if call.flags is not None else 0
        at = AT_FDCWD if call.at is None else as_int(self.arguments[call.at])
        start = f"/proc/{self.thread}/cwd" if at == AT_FDCWD else f"/proc/{self.thread}/fd/{at}"
        address = 0 if call.path is None else self.arguments[call.path]
        path = self.read_path(address) if address else b""
        by_descriptor = address == 0 or (path == b"" and flags & AT_EMPTY_PATH)
        if by_descriptor and at == AT_FDCWD and address == 0:
            raise OSError(errno.EFAULT, "path")
        try:
            base = os.open(start, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            raise OSError(errno.EBADF, "descriptor") from None
        if by_descriptor:
            return base
        try:
            follows = call.follows and not flags & AT_SYMLINK_NOFOLLOW
            return os.open(self.own(path), os.O_PATH | os.O_CLOEXEC | (0 if follows else os.O_NOFOLLOW), dir_fd=base)
        finally:
            os.close(base)

    def own(self, path: bytes) -> bytes:
        """
        Returns the path with the thread's number in place of "self" in /proc/self; libc's own paths to descriptors
        begin like that.
        """
        for mine in (b"/proc/self/", b"/proc/thread-self/"):
            if path.startswith(mine):
                return b"/proc/%d/%s" % (self.thread, path[len(mine) :])
        return b"/proc/%d/fd/%s" % (self.thread, path[8:]) if path.startswith(b"/dev/fd/") else path


def decide(asked: Asked, places: Places, is_valid) -> int:
    """
    Makes the change if it is allowed. Returns an errno, or 0. `is_valid()`: whether the call still waits. If so, the
    memory that was read is that of its thread, and not of a later thread with the same number.
    """
    call = BY_NUMBER[asked.number]
    value = asked.arguments[call.value]
    times = asked.read_times(value, call.times) if call.change == "times" else None
    held = asked.find(call)
    try:
        if not is_valid():
            return errno.EINTR
        found = os.fstat(held)
        if not places.allow(os.readlink(f"/proc/self/fd/{held}"), found):
            return errno.EPERM
        if call.change == "mode":
            if stat.S_ISLNK(found.st_mode):
                return errno.EOPNOTSUPP
            os.chmod(f"/proc/self/fd/{held}", value & PERMISSIONS)
            return 0
        if call.change == "owner":
            ids = as_int(value), as_int(asked.arguments[call.value + 1])
            return result_of(libc.fchownat(held, b"", *ids, AT_EMPTY_PATH))
        if stat.S_ISLNK(found.st_mode):
            return result_of(libc.utimensat(held, b"", times, AT_EMPTY_PATH))
        return result_of(libc.utimensat(AT_FDCWD, f"/proc/self/fd/{held}".encode(), times, 0))
    finally:
        os.close(held)


def as_int(argument: int) -> int:
    return ctypes.c_int(argument & 0xFFFFFFFF).value


def result_of(code: int) -> int:
    return 0 if code == 0 else ctypes.get_errno()


def serve(listener: int, places: Places):
    """Decides calls until no process that could make one is left."""

    def is_valid():
        try:
            fcntl.ioctl(listener, IS_VALID, struct.pack("Q", asked.key))
        except OSError:
            return False
        return True

    data = bytearray(NOTIFICATION_BYTES)
    while True:
        data[:] = bytes(NOTIFICATION_BYTES)  # the system refuses anything else
        try:
            fcntl.ioctl(listener, RECEIVE, data, True)
        except OSError as error:
            if error.errno in (errno.EINTR, errno.ENOENT):  # the call was interrupted before it could be received
                if is_over(listener):
                    return
                continue
            return
        asked = Asked(data)
        try:
            code = decide(asked, places, is_valid)
        except OSError as error:
            code = error.errno or errno.EPERM
        except (ValueError, struct.error):
            code = errno.EFAULT
        with suppress(OSError):  # the caller was interrupted or is gone
            fcntl.ioctl(listener, SEND, struct.pack("QqiI", asked.key, 0, -code, 0))


def is_over(listener) -> bool:
    """Returns whether no process has the filter any more, which a listener reports as a hangup."""
    import select

    poll = select.poll()
    poll.register(listener, 0)
    return any(event & select.POLLHUP for _, event in poll.poll(0))
