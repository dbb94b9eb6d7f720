"""
Finds files of a workspace step by step from its opened folder. So the search never leaves the folder, even if a name
is replaced by a link in the meantime.
"""

import contextlib
import os
import stat

from engines.failure import EngineFailure

MAX_LINKS = 40
WAL_VERSION = 2
STEP = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class Place:
    """A file in an opened folder. Close it after use."""

    def __init__(self, folder, name, found):
        self.folder = folder  # the folder's descriptor
        self.name = name  # the file's name; None for the folder itself
        self.found = found  # os.stat_result, of the file or the folder

    @property
    def path(self):
        """Returns a path through the descriptor. It leads to the same folder even if that folder is
        moved.
        """
        return f"/proc/self/fd/{self.folder}/{self.name}"

    @property
    def identity(self):
        return self.found.st_dev, self.found.st_ino

    def close(self):
        os.close(self.folder)


class Workspace:
    """The folder of a workspace's files."""

    def __init__(self, folder):
        self.folder = folder  # a real path

    def find(self, path, allow_folder=False) -> Place:
        """Returns the place of the file at the path. Raises EngineFailure `file_missing` for a
        path that leads outside, to nothing, or to another kind of entry, and `file_unusable` for
        a file that may not be read."""
        with contextlib.ExitStack() as opened:
            try:
                walk = self._walk(path, opened)
            except PermissionError:
                raise EngineFailure("file_unusable") from None
            except (OSError, ValueError):  # ValueError means that the name has a zero byte
                raise EngineFailure("file_missing") from None
            folder, name, found = walk
            fits = stat.S_ISREG(found.st_mode) or (allow_folder and stat.S_ISDIR(found.st_mode))
            if not fits:
                raise EngineFailure("file_missing")
            return Place(os.dup(folder), name, found)

    def _walk(self, path, opened):
        """
        Returns (descriptor of the folder, name in it, its os.stat_result). Links are followed here and not by the
        system: their text is read, and is looked up in the same way.
        """

        def open_step(name, **where):
            descriptor = os.open(name, STEP, **where)
            opened.callback(os.close, descriptor)
            return descriptor

        folders = [open_step(self.folder)]
        steps = path.split("/")[::-1]
        links = 0
        while steps:
            step = steps.pop()
            if step in ("", "."):
                continue
            if step == "..":
                folders.pop()
                if not folders:
                    raise FileNotFoundError(path)
                continue
            descriptor = open_step(step, dir_fd=folders[-1])
            found = os.fstat(descriptor)
            if stat.S_ISDIR(found.st_mode):
                folders.append(descriptor)
            elif stat.S_ISLNK(found.st_mode):
                links += 1
                target = os.readlink("", dir_fd=descriptor)
                if links > MAX_LINKS:
                    raise FileNotFoundError(path)
                if target.startswith("/"):
                    if not (target + "/").startswith(self.folder + "/"):
                        raise FileNotFoundError(path)
                    del folders[1:]
                    target = target[len(self.folder) :]
                steps += target.split("/")[::-1]
            elif any(step not in ("", ".") for step in steps):
                raise NotADirectoryError(path)
            else:
                return folders[-1], step, found
        return folders[-1], None, os.fstat(folders[-1])


def uses_wal(place) -> bool:
    """Returns whether the file is a SQLite database with a write-ahead log."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(place.name, flags, dir_fd=place.folder)
    except OSError:
        return False
    try:
        return stat.S_ISREG(os.fstat(descriptor).st_mode) and WAL_VERSION in os.pread(descriptor, 2, 18)
    finally:
        os.close(descriptor)
