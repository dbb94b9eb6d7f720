"""Landlock: which files may be read and written, by path; from ABI 4 TCP by port, from ABI 6 signals and abstract
sockets.

It does not cover chmod, chown, utime, xattr and stat, nor unix sockets by path. It binds the calling thread and its
children.
"""

import os
import stat
import struct

from confinement.syscalls import syscall

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
MAKE_CHAR, MAKE_BLOCK, TRUNCATE, IOCTL_DEV = 1 << 6, 1 << 11, 1 << 14, 1 << 15
ALL = (1 << 16) - 1
RIGHTS_OF_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
READ = EXECUTE | READ_FILE | READ_DIR
WRITE = ALL & ~(IOCTL_DEV | MAKE_CHAR | MAKE_BLOCK)
ON_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
ABI_WITH_TCP, ABI_WITH_SCOPES = 4, 6
BIND_AND_CONNECT, CONNECT, SIGNALS_AND_ABSTRACT_SOCKETS = 3, 2, 3
CREATE_RULESET_VERSION, RULE_PATH_BENEATH, RULE_NET_PORT = 1, 1, 2


def find_abi() -> int:
    """The newest version that this kernel offers; 0: none."""
    try:
        return syscall("landlock_create_ruleset", 0, 0, CREATE_RULESET_VERSION)
    except OSError:
        return 0


def restrict(abi: int, rules, tcp_ports=None):
    """`rules`: (path, rights), missing paths are skipped. `tcp_ports`: None leaves TCP alone, else the only ones to
    connect to."""
    handled = RIGHTS_OF_ABI.get(abi, ALL)
    tcp = BIND_AND_CONNECT if abi >= ABI_WITH_TCP and tcp_ports is not None else 0
    scopes = SIGNALS_AND_ABSTRACT_SOCKETS if abi >= ABI_WITH_SCOPES else 0
    size = 8 if abi < ABI_WITH_TCP else 16 if abi < ABI_WITH_SCOPES else 24
    ruleset = syscall("landlock_create_ruleset", struct.pack("<QQQ", handled, tcp, scopes)[:size], size, 0)
    for path, rights in rules:
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:  # not on this machine
            continue
        allowed = rights & handled
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            allowed &= ON_FILES
        syscall("landlock_add_rule", ruleset, RULE_PATH_BENEATH, struct.pack("<Qi", allowed, descriptor), 0)
        os.close(descriptor)
    for port in tcp_ports if tcp else ():
        syscall("landlock_add_rule", ruleset, RULE_NET_PORT, struct.pack("<QQ", CONNECT, port), 0)
    syscall("landlock_restrict_self", ruleset, 0)
    os.close(ruleset)
