"""
A session's view of the disk: the system is read-only, its writable paths are unchanged, and everything else is empty.
A read-only mount does not prevent connections to a socket in it. Other programs have sockets below /var, /srv, /opt
or folders of their own, to which any user may connect. So only the folders of the system and the requested paths
stay.
"""

import contextlib
import functools
import os
import stat
import struct
import sys

from confinement.syscalls import call, libc, syscall

READ_ONLY, NOSUID, NODEV, NOEXEC = 1, 2, 4, 8  # mount_setattr has the same values
BIND, RECURSIVE, PRIVATE, SLAVE = 1 << 12, 1 << 14, 1 << 18, 1 << 19
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
OPEN_TMP = ("/tmp", "/dev/shm")
COVERED = (*OPEN_TMP, "/run", "/dev")
# the files of /dev that a kernel has, in addition to /dev/shm and terminals of its own
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
DEVICE_LINKS = {
    "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}  # fmt: skip
# folders that only root may read; a kernel that runs as root could read them without any capability
OF_ROOT = ("/sys/firmware", "/sys/kernel/debug", "/sys/kernel/tracing", "/sys/kernel/security", "/sys/fs/bpf", "/sys/fs/pstore")
SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/etc", "/proc", "/sys", *DEVICES)
# folders outside of the system's that libraries need: an index of fonts, and certificates to which /etc only links
NEEDED = ("/var/cache/fontconfig", "/var/lib/ca-certificates")
CONFIGURATION = "/etc"
# the configuration that programs need; every user may read these files
NEEDED_CONFIGURATION = (
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/gai.conf",
    "/etc/nsswitch.conf", "/etc/services", "/etc/protocols", "/etc/passwd", "/etc/group", "/etc/localtime", "/etc/timezone",
    "/etc/locale.alias", "/etc/os-release", "/etc/mime.types", "/etc/fonts", "/etc/terminfo", "/etc/alternatives", "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted", "/etc/ca-certificates",
)  # fmt: skip
MAX_TERMINALS = 64  # terminals of one session: all sessions together have as many as the machine
MAX_INODES = 16_384  # for a writable tmpfs: each file takes a KiB, however small it is


def is_under(path, folder):
    return path == folder or path.startswith(folder.rstrip("/") + "/")


@functools.cache
def find_python() -> list[str]:
    """
    Returns the directories of this interpreter and its packages: the paths that it knows, and the targets of links in
    them.
    """
    paths = [sys.prefix, sys.base_prefix, sys.exec_prefix, *filter(os.path.isdir, sys.path)]
    return list(dict.fromkeys(find(path) for find in (os.path.realpath, os.path.abspath) for path in paths))


def find_resolver() -> list[str]:
    """Returns the target of /etc/resolv.conf. It is often in /run, where it would be covered."""
    path = os.path.realpath("/etc/resolv.conf")
    return [path] if os.path.isfile(path) else []


def build(hidden, read, write, tmp_mb, follows_host=False, of_root=(), own_group=None) -> list[str]:
    """Builds the view in a new mount namespace. Returns descriptions, for people, of the parts that failed. All paths
    are real paths; `hidden`, `read` and `write` may lie in each other, and the innermost counts.

    With `follows_host`, a file system that the machine unmounts is unmounted here, too, unless it is one of these
    paths. Without it, a living kernel keeps the file system in use. With it, later mounts of the machine appear here
    as well, and only Landlock keeps them closed.

    `of_root`: OF_ROOT where the server is root; the caller then calls close_proc(). `own_group`: the folder of the
    kernel's control group, which appears in place of the folder with the groups of all kernels.
    """
    os.umask(0o022)  # a kernel with a uid of its own must be able to pass through the folders made here
    mount(None, "/", flags=RECURSIVE | (SLAVE if follows_host else PRIVATE))
    write = [path for path in write if os.path.exists(path)]
    for path in write:
        mount(path, path, flags=BIND)  # a separate mount, so that it stays writable
    kept = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in {*read, *write, *DEVICES} if os.path.exists(path)}
    steps = plan(find_covers((*hidden, *of_root), kept), kept)
    folders = {path for path, _ in steps if os.path.isdir(path)}
    bare = find_bare(steps, folders)
    for path in bare:
        mount(bare[0], path, flags=BIND) if path != bare[0] else cover(path, True, tmp_mb)
    set_flags("/", READ_ONLY | NOSUID, recursive=True)
    steps = [step for step in steps if step[0] not in bare]
    for path, is_cover in steps:
        make_place(path, path in folders)
        if is_cover:
            cover(path, path in folders, tmp_mb)
        else:
            mount(f"/proc/self/fd/{kept[path]}", path, flags=BIND | RECURSIVE)
    for descriptor in kept.values():
        os.close(descriptor)
    for path in write:
        set_flags(path, clear=READ_ONLY)
    furnish_devices()
    for path, is_cover in steps:
        if is_cover and path not in OPEN_TMP:
            set_flags(path, READ_ONLY)
    if own_group:
        mount(own_group, os.path.dirname(own_group), flags=BIND)
    try:
        mount("proc", "/proc", "proc", NOSUID | NODEV | NOEXEC)
    # a container that masks parts of /proc does not allow it
    except OSError as error:
        return [f"other processes visible in /proc ({error.strerror})"]
    return []


def furnish_devices():
    """Completes the /dev of a session: names of its open files, and terminals of its own."""
    for name, target in DEVICE_LINKS.items():
        os.symlink(target, f"/dev/{name}")
    os.mkdir("/dev/pts")
    with contextlib.suppress(OSError):  # a container may not allow terminals: then the session has none
        mount("devpts", "/dev/pts", "devpts", NOSUID | NOEXEC, f"newinstance,ptmxmode=0666,mode=620,max={MAX_TERMINALS}")


def close_proc():
    """For a session with a /proc of its own: makes the machine's part of it read-only, and makes
    the files that only root may read unreadable. Root owns them, and an owner can write most of
    them without any capability."""
    with os.scandir("/proc") as entries:
        found = [one for one in entries if not one.name.isdigit() and not one.is_symlink()]
    for entry in found:
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            mount(entry.path, entry.path, flags=BIND)
            set_flags(entry.path, READ_ONLY | NOSUID | NODEV | NOEXEC)
        elif not mode & stat.S_IROTH:
            cover(entry.path, False, 0)
        elif mode & stat.S_IWUSR:
            mount(entry.path, entry.path, flags=BIND)
            set_flags(entry.path, READ_ONLY | NOSUID | NODEV | NOEXEC)


def find_covers(hidden, kept) -> set[str]:
    """Returns the paths to cover, whose contents disappear except for the paths in `kept`."""
    covers = {path for path in (*hidden, *COVERED) if os.path.exists(path) and not os.path.islink(path)}
    if "/" not in kept:
        covers.update(find_foreign())
    return covers.difference(kept)


def find_foreign() -> list[str]:
    """Returns the folders in the root directory that are not the system's."""
    return _find_foreign(os.stat("/").st_mtime_ns)


@functools.lru_cache(maxsize=1)  # done in the zygote, because searching again takes a kernel longer than all of its mounts
def _find_foreign(_):
    with os.scandir("/") as entries:
        return [one.path for one in entries if one.is_dir(follow_symlinks=False) and one.path not in (*SYSTEM, "/dev")]


def plan(covers, kept) -> list[tuple[str, bool]]:
    """
    Returns the mounts to make, outer ones before inner ones: (path, whether it is a cover). Leaves out mounts without
    effect.
    """
    steps, outer = [], [("/", False)]
    for path in sorted({*covers, *kept}, key=lambda path: path.split("/")):  # parents come before their contents
        is_cover = path in covers
        while not is_under(path, outer[-1][0]):
            outer.pop()
        if is_cover != outer[-1][1] or (is_cover and path in OPEN_TMP):
            outer.append((path, is_cover))
            steps.append(outer[-1])
    return steps


def find_bare(steps, folders) -> list[str]:
    """Returns the covers that contain no mount. They share one empty folder, which is faster.
    """
    following = [*(path for path, _ in steps[1:]), ""]  # the contents of a path follow it
    return [
        path
        for (path, is_cover), after in zip(steps, following)
        if is_cover and path in folders and path not in OPEN_TMP and not is_under(after, path)
    ]


def cover(path, is_folder, tmp_mb):
    """Covers a path: a folder becomes empty, and a file becomes a device that cannot be opened."""
    if is_folder:
        is_open = path in OPEN_TMP
        options = f"size={tmp_mb}m,nr_inodes={MAX_INODES},mode=1777" if is_open else "size=1m,nr_inodes=1024,mode=755"
        mount("tmpfs", path, "tmpfs", NOSUID | NODEV, options)
    else:
        mount("/dev/null", path, flags=BIND)
        set_flags(path, NODEV | NOEXEC)


def leave_out(hidden, path):
    """Returns `path` if nothing in `hidden` lies in it. Otherwise returns everything else that is in it now.
    """
    if path in hidden:
        return
    inner = [one for one in hidden if is_under(one, path)]
    if not inner:
        yield path
    elif os.path.isdir(path):
        for entry in os.scandir(path):
            if not entry.is_symlink():  # the link leads to another path
                yield from leave_out(inner, entry.path)


def find_configuration(trusts_modes: bool) -> list[str]:
    """
    Returns the paths of the system's configuration, without files that only their owner or group may read, such as
    keys and passwords. Without `trusts_modes` notebook code could change the modes of these files: then only
    NEEDED_CONFIGURATION is returned.
    """
    if not trusts_modes:
        return list(NEEDED_CONFIGURATION)
    folders, paths = _walk_configuration()
    if any(changed != find_change(folder) for folder, changed in folders.items()):
        _walk_configuration.cache_clear()
        _, paths = _walk_configuration()
    return paths


_closed = set()  # a path that was once found closed stays closed, even if its mode changes later


@functools.cache
def _walk_configuration():
    """Returns ({folder: the time of its last change}, the paths)."""
    folders, found, left = {}, [], [CONFIGURATION]
    while left:
        folder = left.pop()
        folders[folder] = find_change(folder)
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            if entry.is_symlink():
                continue
            is_folder = entry.is_dir(follow_symlinks=False)
            needed = 0o5 if is_folder else 0o4
            if entry.path in _closed or entry.stat(follow_symlinks=False).st_mode & needed != needed:
                _closed.add(entry.path)
                found.append(entry.path)
            elif is_folder:
                left.append(entry.path)
    return folders, list(leave_out(found, CONFIGURATION))


def find_change(path) -> int:
    """
    Returns the time at which entries, mode or owner last changed; 0 without such a path. Unlike the time of
    modification, no program can set it.
    """
    try:
        return os.stat(path).st_ctime_ns
    except OSError:
        return 0


def make_place(path, is_folder):
    """Makes a mount point, which already exists if an outer path was kept as well."""
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
