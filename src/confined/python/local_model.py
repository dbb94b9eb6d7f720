"""Serves one model file with llama.cpp's own OpenAI server on a unix socket, until the server closes standard input.

Arguments: the GGUF file, the socket, the size of the context. Standard input is a connection to the server, in frames:

    to us      {"key"}                       the key that requests must carry
    from us    {"op":"model-ready"}          the model is loaded
               {"op":"model-failed","message"}
"""

import ctypes
import json
import os
import socket
import sys

from frames import FROM_KERNEL, frame, read_frames

PR_SET_DUMPABLE = 4


def main():
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)  # the memory of this process holds the key
    server = socket.socket(fileno=0)
    messages = read_frames(server)
    _, body = next(messages)
    running, answer = serve(json.loads(body)["key"], *sys.argv[1:4])
    server.sendall(frame(FROM_KERNEL, json.dumps(answer).encode()))
    for _ in messages:
        pass
    os._exit(0)


def serve(key, path, address, context):
    """Returns (server, message): the server runs as long as it is referenced, and is None if it could not be started; the
    message reports which."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx = int(context)
    params.n_parallel = 1  # one generation at a time: two are slower than one after the other
    params.offline = True
    params.ui = False
    params.verbosity = 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = max(1, (os.cpu_count() or 2) // 2)
    params.hostnames = [address]
    params.api_keys = [key]
    try:
        return xllamacpp.Server(params), {"op": "model-ready"}  # loads the model
    except RuntimeError:
        why = "it is no GGUF file, not a whole one, or too new or too large for it"
        if not os.access(path, os.R_OK):
            why = f"user {os.getuid()} cannot read it"
        return None, {"op": "model-failed", "message": f"llama.cpp does not take {path}: {why}"}


main()
