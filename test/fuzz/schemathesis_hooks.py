"""What schemathesis may send, and ids of things that are there.

uWebSockets.js takes a header name of other characters than these, or a control character in a value, for a head that is
not over yet, and ends the connection when nothing follows within ten seconds: such headers are left out. A third of the
generated ids become real ones, chosen by the generated value, so that a seed always gives the same requests.
"""

import json
import os
import re
import zlib

import schemathesis

NAME, VALUE = re.compile(r"[A-Za-z0-9-]+"), re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
IDS = json.loads(os.environ.get("FUZZ_IDS", "{}"))


def real(name, value):
    if name in IDS and zlib.crc32(str(value).encode("utf-8", "replace")) % 3 == 0:
        return IDS[name]
    return value


@schemathesis.hook
def map_headers(context, headers):
    return {
        name: real(name, value)
        for name, value in (headers or {}).items()
        if NAME.fullmatch(str(name)) and VALUE.fullmatch(str(value))
    }


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    return {name: real(name, value) for name, value in (path_parameters or {}).items()}


@schemathesis.hook
def map_body(context, body):
    if not isinstance(body, dict):
        return body
    return {name: real(name, value) for name, value in body.items()}
