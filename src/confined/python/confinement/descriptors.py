"""The open files of this process. A child has an explicit list of files to keep; everything else is closed."""

import os

STDIO = (0, 1, 2)


def close_all_but(*kept: int | None):
    """Closes every descriptor except standard input, output and error and the members of `kept`
    that are not None.
    """
    for descriptor in {int(name) for name in os.listdir("/proc/self/fd")}.difference(STDIO, kept):
        try:
            os.close(descriptor)
        except OSError:  # it was used to read the list, and is closed already
            pass
