"""Landlock: which files may be read and written, by path; from ABI 4 TCP by port, from ABI 6 signals and abstract
sockets, from ABI 9 unix sockets by path.

It does not cover chmod, chown, utime, xattr and stat. It binds the calling thread and its children.
"""

import ctypes
import os
import stat
import struct

from confinement.syscalls import MACHINE, NUMBERS, libc, syscall

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REMOVE_FILE, MAKE_SOCKET = 1 << 5, 1 << 9
MAKE_CHAR, MAKE_BLOCK, TRUNCATE, IOCTL_DEV = 1 << 6, 1 << 11, 1 << 14, 1 << 15
CONNECT_TO_SOCKETS = 1 << 16
ALL = (1 << 17) - 1
# the rights of the newest ABI that is not newer than the machine's
RIGHTS_SINCE_ABI = {9: ALL, 5: (1 << 16) - 1, 3: (1 << 15) - 1, 2: (1 << 14) - 1, 1: (1 << 13) - 1}
READ = EXECUTE | READ_FILE | READ_DIR
WRITE = ALL & ~(IOCTL_DEV | MAKE_CHAR | MAKE_BLOCK)
SOCKETS = REMOVE_FILE | MAKE_SOCKET
ON_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV | CONNECT_TO_SOCKETS
ABI_WITH_TCP, ABI_WITH_SCOPES, ABI_WITH_SOCKETS = 4, 6, 9
BIND_AND_CONNECT, CONNECT, SIGNALS_AND_ABSTRACT_SOCKETS = 3, 2, 3
ADD_RULE = NUMBERS["landlock_add_rule"][MACHINE or 0]
RULE = struct.Struct("<Qi")
CREATE_RULESET_VERSION, RULE_PATH_BENEATH, RULE_NET_PORT = 1, 1, 2


def find_abi() -> int:
    """Returns the newest version that this kernel offers; 0 when it offers none."""
    try:
        return syscall("landlock_create_ruleset", 0, 0, CREATE_RULESET_VERSION)
    except OSError:
        return 0


def find_rights(abi: int) -> int:
    """
    Returns the rights to files that this version can restrict. Of a version that is newer than this code, only the
    rights known here are used.
    """
    return next(rights for since, rights in RIGHTS_SINCE_ABI.items() if abi >= since)


class Ruleset:
    """A list of permissions. enforce() puts it into force. A rule applies to the file or folder that
    is now at its path, even if that is mounted elsewhere later."""

    def __init__(self, abi: int, has_tcp_ports: bool):
        """`has_tcp_ports`: TCP is restricted too, where Landlock can do that."""
        self.handled = find_rights(abi)
        self.tcp = BIND_AND_CONNECT if abi >= ABI_WITH_TCP and has_tcp_ports else 0
        scopes = SIGNALS_AND_ABSTRACT_SOCKETS if abi >= ABI_WITH_SCOPES else 0
        size = 8 if abi < ABI_WITH_TCP else 16 if abi < ABI_WITH_SCOPES else 24
        attributes = struct.pack("<QQQ", self.handled, self.tcp, scopes)[:size]
        self.descriptor = syscall("landlock_create_ruleset", attributes, size, 0)

    def allow(self, rights: int, paths):
        """Allows these rights below each path; missing paths are skipped."""
        handled = rights & self.handled
        for path in paths if handled else ():
            try:
                descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:  # the path does not exist on this machine
                continue
            allowed = handled if stat.S_ISDIR(os.fstat(descriptor).st_mode) else handled & ON_FILES
            # without helpers, because each start as root does this some two hundred times
            if libc.syscall(ADD_RULE, self.descriptor, RULE_PATH_BENEATH, RULE.pack(allowed, descriptor), 0) < 0:
                code = ctypes.get_errno()
                raise OSError(code, os.strerror(code), "landlock_add_rule")
            os.close(descriptor)

    def allow_ports(self, ports):
        """Allows connections to these TCP ports."""
        for port in ports if self.tcp else ():
            syscall("landlock_add_rule", self.descriptor, RULE_NET_PORT, struct.pack("<QQ", CONNECT, port), 0)

    def enforce(self):
        """Binds this thread to the rules for good."""
        syscall("landlock_restrict_self", self.descriptor, 0)
        os.close(self.descriptor)
