"""Confinement of a kernel: for code that nobody has read, running as the server's own user."""
