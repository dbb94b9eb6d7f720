"""Makes the kernel's user the owner of the working directory, which another user may have created
or used last.
"""

import contextlib
import os


def give(folder: str, uid: int):
    """Gives the user the folder and everything in it, unless the folder has the right owner already. Follows no links,
    which notebook code may have left there. The folder itself comes last, so that the next start resumes an
    interrupted change."""
    if not os.path.isdir(folder) or os.stat(folder).st_uid == uid:
        return  # missing: the kernel reports that when it enters the folder
    for _, folders, files, descriptor in os.fwalk(folder, follow_symlinks=False):
        for name in (*folders, *files):
            with contextlib.suppress(FileNotFoundError):  # another kernel of this workspace has removed it meanwhile
                os.chown(name, uid, uid, dir_fd=descriptor, follow_symlinks=False)
    os.chown(folder, uid, uid)
