/** Code of a cell that finds its kernel's own socket, to which other cells can then write anything. */
export const FORGE = `
import os, socket, struct, json
def find():
    for fd in map(int, os.listdir("/proc/self/fd")):
        try:
            found = socket.socket(fileno=os.dup(fd))
            if found.family == socket.AF_UNIX and found.getpeername():
                return found
        except OSError:
            pass
kernel_socket = find()
def forge(raw):
    kernel_socket.sendall(raw)
def frame(message, channel=0):
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return struct.pack("<IB", len(body) + 1, channel) + body
def done(seq, cells={}):
    return frame(dict(op="bridge-done", seq=seq, token=None, type="Forged", error=None, interrupted=False, cells=cells))
`;
