"""A session's view of the disk: what it may write is as it is, hidden places are empty, and the rest is read-only."""

import os
import pwd
import struct

from confinement.syscalls import call, libc, syscall

READ_ONLY, NOSUID, NODEV, NOEXEC = 1, 2, 4, 8  # as mount_setattr has them, too
BIND, RECURSIVE, PRIVATE = 1 << 12, 1 << 14, 1 << 18
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
OPEN_TMP = ("/tmp", "/dev/shm")
COVERED = (*OPEN_TMP, "/run")
SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc", "/opt", "/proc", "/sys", "/dev/urandom", "/dev/random")


def is_under(path, folder):
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def find_home() -> list[str]:
    """The home directory of this user, where keys and the history of shells lie; none when it holds the system or lies
    in it."""
    try:
        home = os.path.realpath(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        return []
    overlaps = any(is_under(home, folder) or is_under(folder, home) for folder in (*SYSTEM, "/var", "/dev"))
    return [] if overlaps or not os.path.isdir(home) else [home]


def find_resolver() -> list[str]:
    """Where /etc/resolv.conf leads to: often into /run, which is covered."""
    path = os.path.realpath("/etc/resolv.conf")
    return [path] if os.path.isfile(path) else []


def build(hidden, read, write, tmp_mb) -> list[str]:
    """In a new mount namespace. Answers what could not be had, for people. All paths are real paths."""
    mount(None, "/", flags=RECURSIVE | PRIVATE)
    covers = find_covers(hidden)
    for path in write:
        mount(path, path, flags=BIND)  # a mount of its own, so that it can stay writable
    kept = [path for path in dict.fromkeys([*read, *write]) if any(is_under(path, cover) for cover in covers)]
    opened = [
        (path, os.open(path, os.O_PATH | os.O_CLOEXEC), os.path.isdir(path)) for path in kept if os.path.exists(path)
    ]
    set_flags("/", READ_ONLY | NOSUID, recursive=True)
    for cover in covers:
        options = f"size={tmp_mb}m,mode=1777" if cover in OPEN_TMP else "size=1m,mode=755"
        mount("tmpfs", cover, "tmpfs", NOSUID | NODEV, options)
    for path, descriptor, is_folder in opened:
        make_place(path, is_folder)
        mount(f"/proc/self/fd/{descriptor}", path, flags=BIND | RECURSIVE)
        os.close(descriptor)
    for path in write:
        set_flags(path, clear=READ_ONLY)
    for cover in covers:
        if cover not in OPEN_TMP:
            set_flags(cover, READ_ONLY)
    try:
        mount("proc", "/proc", "proc", NOSUID | NODEV | NOEXEC)
    # a container that masks parts of /proc does not allow it
    except OSError as error:
        return [f"other processes visible in /proc ({error.strerror})"]
    return []


def find_covers(hidden) -> list[str]:
    """The outermost of the places that become empty."""
    covers = []
    for path in sorted({*hidden, *COVERED, *find_home()}):
        if os.path.isdir(path) and not os.path.islink(path) and not any(is_under(path, cover) for cover in covers):
            covers.append(path)
    return covers


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
