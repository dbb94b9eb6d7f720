"""Changes the requests that schemathesis generates, and counts the results.

Most generated ids are replaced by ids of existing objects, the newest that an answer has named: a request for an unknown object
gets a 404 and tests little. Headers with unusual names are left out, and those with a control character in their value, which
uWebSockets.js refuses with an empty 400.

FUZZ_FIRST: the objects that exist at the start, {kind: [id]}. FUZZ_SPARED: ids, separated by spaces, of the objects that every
test needs. FUZZ_REPORT: the file that gets the counts, {"cases", "failed", "statuses": {operation: {status: count}}}.
"""

import atexit
import json
import os
import re
import zlib
from collections import Counter, defaultdict, deque

import schemathesis

NAME, VALUE = re.compile(r"[A-Za-z0-9-]+"), re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
ID = re.compile(r"\b(nb|env|run|conv|tok|ws|asset)_[0-9a-z]{8,}")
KINDS = {
    "notebookId": "nb", "sessionId": "session", "notebookSessionId": "session", "Service-Session-Id": "session",
    "environmentId": "env", "runId": "run", "tokenId": "tok", "workspaceId": "ws", "userId": "user", "slug": "slug",
    "subject": "user", "assetId": "asset", "cellId": "cell",
}  # fmt: skip
NEWEST = 6
SPARED = set(os.environ["FUZZ_SPARED"].split())
first = json.loads(os.environ["FUZZ_FIRST"])
newest = defaultdict(lambda: deque(maxlen=NEWEST))
statuses = defaultdict(Counter)
failed = set()


@schemathesis.hook
def before_call(context, case, kwargs):
    for values in (case.path_parameters, case.headers, case.body):
        if not hasattr(values, "items"):
            continue
        for name, value in list(values.items()):
            chance = zlib.crc32(repr(value).encode("utf-8", "replace"))
            ids = find_ids(context, name)
            # a deleted object is missing for all later requests
            is_spared = isinstance(value, str) and value in SPARED  # schemathesis knows ids of its own
            if is_spared or (ids and (chance % 4 if case.method != "DELETE" else chance % 16 == 0)):
                values[name] = ids[chance // 16 % len(ids)] if ids else "spared"


def find_ids(context, name):
    kind = KINDS.get(name)
    if kind == "session" and "/agent-sessions/" in context.operation.path:
        kind = "conv"
    return [*first.get(kind, ()), *newest[kind]]


@schemathesis.hook
def after_call(context, case, response):
    statuses[case.operation.label][response.status_code] += 1
    if response.status_code < 300:
        for found in ID.finditer(response.text):
            note(found[1], found[0])
        if response.status_code == 202 and case.operation.path.endswith("/notebook-sessions"):
            note("session", ID.search(response.text)[0])


def note(kind, id):
    if id not in newest[kind] and id not in SPARED:
        newest[kind].append(id)


@schemathesis.hook
def filter_failure(context, failure, case, response):
    failed.add(case.id)
    return True


@schemathesis.hook
def map_headers(context, headers):
    return {
        name: value
        for name, value in (headers or {}).items()
        if NAME.fullmatch(str(name)) and VALUE.fullmatch(str(value))
    }


@atexit.register
def report():
    cases = sum(counts.total() for counts in statuses.values())
    with open(os.environ["FUZZ_REPORT"], "w", encoding="utf-8") as file:
        json.dump({"cases": cases, "failed": len(failed), "statuses": statuses}, file)
