"""What children of the zygote that run no notebook code have in common: conversions, the syntax judge, model servers."""

import os

import kernel_process
import processes
from confinement import syscalls


def become(order, confinement, link, limits):
    """Confines this process to what `order` says and returns its connection to the server. Afterwards it has standard
    input, output and error and that connection open, and nothing else. `link`: the end of a pipe that a session's init
    needs, or None."""
    sock = kernel_process.connect(order.socket_path)
    kernel_process.reopen_stdio()
    if confinement:
        confinement.start(link)  # where there are namespaces, it returns in a child of this process
    if link is not None:
        os.close(link)
    else:
        os.setsid()  # else its process group would be the zygote's, which kill(0, …) reaches
    os.chdir("/")
    kernel_process.limit(limits)
    kernel_process.yield_to_server(0)
    if confinement:
        confinement.finish()
    processes.call_this(type(order).__struct_config__.tag)
    syscalls.set_dumpable(False)
    return sock
