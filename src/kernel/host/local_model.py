"""Serves one model file with llama.cpp's own OpenAI server on a unix socket, until stdin is closed: the parent is gone.

Arguments: the GGUF file, the socket, the size of the context. The environment has the key that requests must carry.
"""

import json
import os
import sys

import xllamacpp


def main():
    path, socket, context = sys.argv[1:4]
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx = int(context)
    params.n_parallel = 1  # one generation at a time: two are slower than one after the other
    params.offline = True
    params.ui = False
    params.verbosity = 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = max(1, (os.cpu_count() or 2) // 2)
    params.hostnames = [socket]
    params.api_keys = [os.environ.pop("LOCAL_MODEL_KEY")]
    try:
        server = xllamacpp.Server(params)  # loads the model
    except RuntimeError:
        sys.exit(f"llama.cpp does not take {path}: it is no GGUF file, not a whole one, or too new or too large for it")
    print(json.dumps({"address": server.listening_address}), flush=True)
    sys.stdin.read()
    os._exit(0)


main()
