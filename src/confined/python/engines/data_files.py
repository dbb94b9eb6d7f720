"""The data files of a folder, each opened once and held open, so that the file that is read is the file that was
checked."""

import itertools
import os
import re
import stat

READERS = (
    (re.compile(r"\.(csv|tsv|tab)(\.gz)?$", re.I), "read_csv({}, ignore_errors = false{})"),
    (re.compile(r"\.(json|jsonl|ndjson)(\.gz)?$", re.I), "read_json({}{})"),
    (re.compile(r"\.(parquet|pq)$", re.I), "read_parquet({})"),
)
MAX_FILES = 500  # each file stays open as long as the connection
MAX_DEPTH = 8
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class DataFile:
    """An open file. Close it after use."""

    def __init__(self, descriptor, view, name):
        self.descriptor = descriptor
        self.view = view  # see `view_name`
        self.name = name

    @property
    def path(self):
        return f"/proc/self/fd/{self.descriptor}"

    def reader(self, path) -> str:
        """Returns the call of the table function that reads the file."""
        options = ", compression = 'gzip'" if self.name.lower().endswith(".gz") else ""
        return find_reader(self.name).format(path, options)

    def close(self):
        os.close(self.descriptor)


def open_all(place) -> list[DataFile]:
    """Opens the data files of a folder and of the folders in it, or one file. Links and other files are left out."""
    found = [place.name] if place.name is not None else below(place.folder)
    taken = set()
    files = []
    for path in found:
        descriptor = None if find_reader(path) is None or len(files) == MAX_FILES else open_file(place.folder, path)
        if descriptor is not None:
            files.append(DataFile(descriptor, view_name(path, taken), path))
    return files


def below(folder, depth=0) -> list[str]:
    """Yields paths relative to the folder: the files of each folder by name, then those of its subfolders."""
    try:
        descriptor = os.open(".", FOLDER, dir_fd=folder)
    except OSError:
        return []
    try:
        with os.scandir(descriptor) as scan:
            entries = sorted((entry for entry in scan if not entry.name.startswith(".")), key=lambda entry: entry.name)
        files = [entry.name for entry in entries if entry.is_file(follow_symlinks=False) and find_reader(entry.name)]
        for entry in entries if depth < MAX_DEPTH else ():
            if len(files) < MAX_FILES and entry.is_dir(follow_symlinks=False):
                files += [f"{entry.name}/{path}" for path in below_named(descriptor, entry.name, depth + 1)]
        return files
    finally:
        os.close(descriptor)


def below_named(folder, name, depth):
    try:
        descriptor = os.open(name, FOLDER, dir_fd=folder)
    except OSError:
        return []
    try:
        return below(descriptor, depth)
    finally:
        os.close(descriptor)


def open_file(folder, path):
    """Returns the file's descriptor; None when it is no longer a file, or may not be read. No step
    follows links.
    """
    *folders, name = path.split("/")
    opened = []
    try:
        for step in folders:
            folder = os.open(step, FOLDER, dir_fd=folder)
            opened.append(folder)
        descriptor = os.open(name, FILE, dir_fd=folder)
    except OSError:
        return None
    finally:
        for one in opened:
            os.close(one)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    return None


def find_reader(name):
    return next((reader for pattern, reader in READERS if pattern.search(name)), None)


def view_name(path, taken) -> str:
    """Returns the shortest name that no other file has: without folders and endings, without
    endings, or the whole path. DuckDB does not distinguish capitals from small letters."""
    stem = re.sub(r"(\.[a-z]+)(\.gz)?$", "", path, flags=re.I)
    names = itertools.chain((stem.rpartition("/")[2], stem, path), (f"{path} {number}" for number in itertools.count(2)))
    view = next(name for name in names if name.lower() not in taken)
    taken.add(view.lower())
    return view
