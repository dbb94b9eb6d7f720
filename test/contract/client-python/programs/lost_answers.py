"""Makes changes whose first answers are lost. Prints the outcome of each."""

import json

from troupe_client import ApiError, ConnectionFailed, Troupe
from troupe_client.models import Notebook

outcomes: dict[str, object] = {}
with Troupe() as troupe:
    notebook = troupe.notebooks.create(title="before")
    try:
        troupe.notebooks.update(notebook, title="after")
    except ConnectionFailed as error:
        outcomes["update"] = isinstance(error.__cause__, ApiError) and error.__cause__.code
    outcomes["title"] = troupe.notebooks.get(notebook.id).title
    other = troupe.notebooks.create(title="before")
    body = {"expectedUpdatedAt": other.updated_at, "title": "after"}
    try:
        troupe.request("PATCH", f"/api/v3/notebooks/{other.id}", Notebook, json=body)
    except ConnectionFailed as error:
        outcomes["request"] = isinstance(error.__cause__, ApiError) and error.__cause__.code
    try:
        troupe.notebooks.update(other, title="late")
    except ApiError as error:
        outcomes["conflict"] = error.code
    troupe.files.write("lost.txt", "kept")
    outcomes["file"] = troupe.files.read("lost.txt").decode()
    troupe.files.delete("lost.txt")
    outcomes["files"] = [entry.path for entry in troupe.files.each("lost")]
    with troupe.open(notebook) as session:
        outcomes["run"] = session.run().status
    outcomes["closed"] = session.record().status
print(json.dumps(outcomes))
