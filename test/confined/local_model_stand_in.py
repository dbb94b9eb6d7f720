"""Stands in for llama.cpp and behaves as src/confined/python/local_model.py promises, without a
model. It reports the length of its key, slowly when asked to. It does not start for a file whose
name says so. When asked to `try` an expression, it reports the result."""

import json
import os
import socket
import socketserver
import struct
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler

path, address = sys.argv[1:3]
connection = socket.socket(fileno=0)
stream = connection.makefile("rb")


def tell(message):
    body = json.dumps(message).encode()
    connection.sendall(struct.pack("<IB", len(body) + 1, 0) + body)


length, _ = struct.unpack("<IB", stream.read(5))
KEY = json.loads(stream.read(length - 1))["key"]
if "broken" in path:
    tell({"op": "model-failed", "message": "not a GGUF file"})
    sys.exit()


def attempt(code):
    try:
        return repr(eval(code))
    except OSError as error:
        return type(error).__name__


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def address_string(self):
        return "unix"

    def log_message(self, *_):
        pass

    def say(self, delta, finish=None):
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
        self.write(f"data: {json.dumps(chunk)}\n\n")

    def write(self, text):
        self.wfile.write(f"{len(text):x}\r\n{text}\r\n".encode())

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.headers["authorization"] != f"Bearer {KEY}":
            return self.send_error(401)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        asked = body["messages"][-1]["content"]
        if asked == "die":
            self.say({"content": "Oh"})
            os.kill(os.getpid(), 9)
        while asked == "forever":
            self.say({"content": "on "})
            time.sleep(0.01)
        if asked.startswith("try "):
            self.say({"content": attempt(asked.removeprefix("try "))})
        else:
            self.say({"content": f"{len(KEY)} at {os.path.basename(path)}"})
        self.say({}, "stop")
        self.write("data: [DONE]\n\n")
        self.write("")


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # the client has left


server = Server(address, Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
tell({"op": "model-ready"})
stream.read()
os._exit(0)
