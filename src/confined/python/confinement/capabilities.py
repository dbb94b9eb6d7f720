"""Privileges: given up for good, before notebook code runs."""

import os
import struct

from confinement.syscalls import PR_CAPBSET_DROP, PR_CAPBSET_READ, PR_SET_NO_NEW_PRIVS, libc, prctl, syscall

CAPABILITY_VERSION_3 = 0x20080522
# all capabilities that this Linux knows: prctl returns -1 for higher numbers
KNOWN = [number for number in range(64) if libc.prctl(PR_CAPBSET_READ, number, 0, 0, 0) >= 0]


def drop_capabilities():
    """
    Drops all capability sets and the bounding set. A process with CAP_SYS_ADMIN could unmount the empty folder that
    hides the server's data.
    """
    for capability in KNOWN:  # without helpers, because every notebook's kernel makes these forty calls
        if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0:
            prctl(PR_CAPBSET_DROP, capability)  # prctl raises OSError when it fails
    syscall("capset", struct.pack("<Ii", CAPABILITY_VERSION_3, 0), bytes(24))


def become(uid: int):
    """Changes the user for good, and drops every capability."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def forbid_new_privileges():
    """Makes sure that no set-uid program gives privileges back. seccomp and Landlock require that.
    """
    prctl(PR_SET_NO_NEW_PRIVS, 1)
