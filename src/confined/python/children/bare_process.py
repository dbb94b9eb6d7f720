"""The common part of the zygote's children that run no notebook code: conversions, the syntax judge, model servers."""

import os

import msgspec

import processes
from confinement import syscalls
from connection import Connection
from kernel import kernel_process


class Reach(msgspec.Struct, kw_only=True):
    """The paths that a process may access in addition to the system and to the paths in its order.
    """

    read: list[str] = []
    write: list[str] = []
    work: str | None = None  # a folder of its own, which it may write
    sockets: list[str] = []  # folders in which unix sockets may be made, and nothing else
    tcp_ports: list[int] | None = None  # from Landlock 4 on, it may connect to these ports only


class Launch(msgspec.Struct, kw_only=True):
    """The task of such a process. The work itself comes later, unless the module of this kind of
    process adds members.
    """

    reach: Reach = msgspec.field(default_factory=Reach)


decode_launch = msgspec.json.Decoder(Launch).decode


def become(order, confinement, link, limits, decode=decode_launch) -> Connection:
    """
    Confines this process as `order` and its launch require, and returns its connection to the server. Closes
    everything except that connection and standard input, output and error. `link`: the end of a pipe that a session's
    init needs, or None.
    """
    connection = Connection(order.connection, decode)
    kernel_process.reopen_stdio()
    if confinement:
        reach = connection.launch.reach
        confinement.reach(reach.work, read=reach.read, write=reach.write, sockets=reach.sockets, tcp_ports=reach.tcp_ports)
        confinement.start(link, order.nice)  # with an init or a supervisor, start() returns in a child
    if link is not None:
        os.close(link)
    else:
        os.setsid()  # otherwise its process group would be the zygote's, which kill(0, …) reaches
    os.chdir("/")
    kernel_process.limit(limits)
    kernel_process.yield_to_server(order.nice)
    if confinement:
        confinement.finish()
    processes.call_this(type(order).__struct_config__.tag)
    syscalls.set_dumpable(bool(confinement and confinement.is_supervised))  # a supervisor reads this memory
    return connection


def within_workspace(limits, order):
    """Returns the limits of this process. Its memory is limited to that of all processes of the workspace together.
    """
    return {**limits, "DATA": min(limits["DATA"], order.memory)} if order.memory else limits
