"""Whose the working directory is: the kernel's user, who need not be the one that made it, or that used it last."""

import contextlib
import os


def give(folder: str, uid: int):
    """The folder and all that is in it, unless it is that user's already. Follows no links, so that what notebook code
    left there leads nowhere else; an interrupted one is taken up again, for the folder itself comes last."""
    if not os.path.isdir(folder) or os.stat(folder).st_uid == uid:
        return  # that it is missing is for the kernel to say, which enters it
    for _, folders, files, descriptor in os.fwalk(folder, follow_symlinks=False):
        for name in (*folders, *files):
            with contextlib.suppress(FileNotFoundError):  # another kernel of this workspace has removed it meanwhile
                os.chown(name, uid, uid, dir_fd=descriptor, follow_symlinks=False)
    os.chown(folder, uid, uid)
