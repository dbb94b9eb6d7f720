"""
Gives elements the files that pages have sent to the server. In the value of a `mo.ui.file`, such a file is `upload:`
and its id in place of base64 (`src/notebook/pages/page-element-files.ts`). The file itself is in a hidden folder of
the working directory. It is removed once it is read: from then on the bytes are in the value of the element, as in
marimo's own server.
"""

import contextlib
import os
import re
import stat
import weakref

from marimo._plugins.ui._impl.input import FileUploadResults, file

from kernel.kernel_state import STATE

MARKED = re.compile(r"upload:([0-9a-f]{32})")
NEVER_LINKS = os.O_NOFOLLOW | os.O_CLOEXEC


class MissingFile(Exception):
    """Raised for a file that is not there. The message is a sentence for people."""


class ElementFiles:
    """The files of one kernel. Its folder is `path` below `root`, the working directory at the start."""

    def __init__(self, root, path):
        self._root = root
        self._names = path.split("/")
        # A value with the same file may be set again, for example by a form. The bytes are in the earlier value then.
        self._results = weakref.WeakValueDictionary()

    def take(self, name, file_id):
        """Returns a file with its bytes, and removes it from the folder. Raises MissingFile."""
        if (result := self._results.get(file_id)) is None:
            result = self._results[file_id] = FileUploadResults(name=name, contents=self._read(name, file_id))
        return result

    def _read(self, name, file_id):
        try:
            folder = self._open_folder()
            try:
                contents = _read_file(folder, file_id)
                with contextlib.suppress(OSError):  # the server removes it at the end
                    os.unlink(file_id, dir_fd=folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise MissingFile(f"The uploaded file {name} is no longer there. Upload it again.") from error
        return contents

    def _open_folder(self):
        """Opens the folder, one name after the other: other code of the workspace may put links in the place of folders."""
        folder = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for name in self._names:
            try:
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | NEVER_LINKS, dir_fd=folder)
            finally:
                os.close(folder)
            folder = inner
        return folder


def _read_file(folder, name):
    descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | NEVER_LINKS, dir_fd=folder)
    with open(descriptor, "rb") as opened:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise FileNotFoundError(name)
        return opened.read()


def install():
    """Patches marimo in this process; once, in the zygote."""
    file._convert_value = _convert_value(file._convert_value)


def _convert_value(convert):
    def convert_value(self, value):
        return tuple(_take(entry) or convert(self, [entry])[0] for entry in value)

    return convert_value


def _take(entry):
    """Returns the file that a page has sent to the server; None for a file that is in the value itself."""
    name, content = entry
    marked = MARKED.fullmatch(content) if isinstance(content, str) else None
    if marked is None or STATE.element_files is None:
        return None
    return STATE.element_files.take(name, marked[1])
