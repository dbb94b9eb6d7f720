"""A session's view of the disk: what it may write is as it is, hidden places are empty, and the rest is read-only."""

import functools
import os
import pwd
import struct
import sys

from confinement.syscalls import call, libc, syscall

READ_ONLY, NOSUID, NODEV, NOEXEC = 1, 2, 4, 8  # as mount_setattr has them, too
BIND, RECURSIVE, PRIVATE = 1 << 12, 1 << 14, 1 << 18
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
OPEN_TMP = ("/tmp", "/dev/shm")
COVERED = (*OPEN_TMP, "/run")
SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc", "/opt", "/proc", "/sys", "/dev/urandom", "/dev/random")


def is_under(path, folder):
    return path == folder or path.startswith(folder.rstrip("/") + "/")


@functools.cache
def find_home() -> list[str]:
    """The home directory of this user, where keys and the history of shells lie; none when it holds the system or lies
    in it."""
    try:
        home = os.path.realpath(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        return []
    overlaps = any(is_under(home, folder) or is_under(folder, home) for folder in (*SYSTEM, "/var", "/dev"))
    return [] if overlaps or not os.path.isdir(home) else [home]


@functools.cache
def find_python() -> list[str]:
    """Where this interpreter and its packages lie, by the paths that it knows and by where links lead."""
    paths = [sys.prefix, sys.base_prefix, sys.exec_prefix, *filter(os.path.isdir, sys.path)]
    return list(dict.fromkeys(find(path) for find in (os.path.realpath, os.path.abspath) for path in paths))


def find_resolver() -> list[str]:
    """Where /etc/resolv.conf leads to: often into /run, which is covered."""
    path = os.path.realpath("/etc/resolv.conf")
    return [path] if os.path.isfile(path) else []


def build(hidden, read, write, tmp_mb) -> list[str]:
    """In a new mount namespace. Answers what could not be had, for people. All paths are real paths; `hidden`, `read`
    and `write` may lie in each other, and the innermost counts."""
    os.umask(0o022)  # a kernel with a uid of its own walks through what is made here
    mount(None, "/", flags=RECURSIVE | PRIVATE)
    write = [path for path in write if os.path.exists(path)]
    for path in write:
        mount(path, path, flags=BIND)  # a mount of its own, so that it can stay writable
    kept = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in {*read, *write} if os.path.exists(path)}
    steps = plan(find_covers(hidden, kept), kept)
    folders = {path for path, _ in steps if os.path.isdir(path)}
    set_flags("/", READ_ONLY | NOSUID, recursive=True)
    for path, is_cover in steps:
        if is_cover:
            cover(path, path in folders, tmp_mb)
        else:
            make_place(path, path in folders)
            mount(f"/proc/self/fd/{kept[path]}", path, flags=BIND | RECURSIVE)
    for descriptor in kept.values():
        os.close(descriptor)
    for path in write:
        set_flags(path, clear=READ_ONLY)
    for path, is_cover in steps:
        if is_cover and path not in OPEN_TMP:
            set_flags(path, READ_ONLY)
    try:
        mount("proc", "/proc", "proc", NOSUID | NODEV | NOEXEC)
    # a container that masks parts of /proc does not allow it
    except OSError as error:
        return [f"other processes visible in /proc ({error.strerror})"]
    return []


def find_covers(hidden, kept) -> set[str]:
    """The places that become empty. The home directory does not when it was asked for by name."""
    covers = {*hidden, *COVERED, *(home for home in find_home() if home not in kept)}
    return {path for path in covers if os.path.exists(path) and not os.path.islink(path)}


def plan(covers, kept) -> list[tuple[str, bool]]:
    """What to mount, from the outside in: (path, whether it is a cover). What would change nothing is left out."""
    steps = []
    for path in sorted({*covers, *kept}):  # so that what a path lies in comes before it
        is_cover = path in covers
        outer = next((step for step in reversed(steps) if is_under(path, step[0])), ("/", False))
        if is_cover != outer[1]:
            steps.append((path, is_cover))
    return steps


def cover(path, is_folder, tmp_mb):
    """A folder becomes empty, a file a device that cannot be opened."""
    if is_folder:
        options = f"size={tmp_mb}m,mode=1777" if path in OPEN_TMP else "size=1m,mode=755"
        mount("tmpfs", path, "tmpfs", NOSUID | NODEV, options)
    else:
        mount("/dev/null", path, flags=BIND)
        set_flags(path, NODEV | NOEXEC)


def leave_out(hidden, path):
    """`path`, or, where something of `hidden` lies in it, everything else that is in it now."""
    if path in hidden:
        return
    inner = [one for one in hidden if is_under(one, path)]
    if not inner:
        yield path
    elif os.path.isdir(path):
        for entry in os.scandir(path):
            if not entry.is_symlink():  # it leads to a path of its own
                yield from leave_out(inner, entry.path)


def make_place(path, is_folder):
    """Something to mount on; it is there already when an outer path was kept as well."""
    if os.path.exists(path):
        return
    os.makedirs(path if is_folder else os.path.dirname(path), exist_ok=True)
    if not is_folder:
        os.close(os.open(path, os.O_CREAT | os.O_RDONLY, 0o444))


def mount(source, target, kind=None, flags=0, data=None):
    names = [None if name is None else os.fsencode(name) for name in (source, target, kind)]
    call(libc.mount, *names, flags, None if data is None else data.encode())


def set_flags(path, add=0, clear=0, recursive=False):
    attributes = struct.pack("<QQQQ", add, clear, 0, 0)
    syscall("mount_setattr", AT_FDCWD, os.fsencode(path), AT_RECURSIVE if recursive else 0, attributes, len(attributes))
