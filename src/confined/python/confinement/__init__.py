"""Confinement of a kernel, which runs untrusted code as the server's own user.

Notebook code must not reach the server's data, its process or other sessions. Layers, strongest first; each works
without the others, and describe.py says in one line which of them this machine offers:

1. namespaces (namespaces.py, views.py): user, pid, mount, ipc. They hide the server's directories, the home directory,
   /tmp, /run and other processes, make everything else read-only, and no descendant outlives the session. Network
   "none" adds a network namespace with only loopback. As root: without the user namespace, and with a uid of its own
   where one is given.
2. Landlock (landlock.py): only listed paths can be read; from ABI 6 on no signals and abstract sockets to the outside.
3. seccomp (seccomp.py): no new namespaces, io_uring, keyrings, bpf, perf; and stand-ins for the parts of 1 and 2 that
   this machine lacks.
4. always (capabilities.py): no_new_privs, no capabilities, rlimits.

Everything happens in the forked child, by ctypes, before its first thread. session.py puts the layers together.
"""
