"""Sends requests to a server that fails on purpose. Prints the outcome of each request."""

import json
import time

from troupe_client import ApiError, CodeInterrupted, ConnectionFailed, Troupe

outcomes: dict[str, object] = {}
with Troupe() as troupe:
    outcomes["created"] = troupe.notebooks.create(title="refused").id
    outcomes["cut"] = troupe.notebooks.create(title="cut").id
    began = time.monotonic()
    outcomes["busy"] = troupe.notebooks.create(title="retry-after").id
    outcomes["waited"] = time.monotonic() - began >= 1
    outcomes["progress"] = troupe.notebooks.create(title="in-progress").id
    troupe.notebooks.delete("nb_deleted")
    session = troupe.session("nb_1")
    try:
        session.code("1 + 1")
    except CodeInterrupted as error:
        outcomes["code"] = str(error).endswith("The code was interrupted, and is not run again.")
    try:
        session.call_function("Hbol-0", "search")
    except CodeInterrupted as error:
        outcomes["function"] = str(error).endswith("The code was interrupted, and is not run again.")
    outcomes["values"] = session.set_ui_values({"Hbol-0": 1}).status
    try:
        troupe.notebooks.get("nb_down")
    except ApiError as error:
        outcomes["down"] = [error.status, error.code]
    try:
        troupe.notebooks.get("nb_bad")
    except ApiError as error:
        outcomes["bad"] = [error.status, error.code, error.errors[0].path]
with Troupe("http://127.0.0.1:1", retries=1) as nowhere:
    try:
        nowhere.me()
    except ConnectionFailed as error:
        outcomes["nowhere"] = error.refused
print(json.dumps(outcomes))
