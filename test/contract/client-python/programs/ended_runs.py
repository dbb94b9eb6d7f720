"""Runs a notebook twice, and prints the ids of the runs, and of those that polls for ended runs have found."""

import json

from troupe_client import Troupe

with Troupe() as troupe:
    notebook = troupe.notebooks.create(cells={"a": "1"})
    with troupe.open(notebook) as session:
        first, second = [session.start().result().run for _ in range(2)]
    filters = {"status": ["completed", "failed"], "createdBy": first.created_by}
    since = [[run.id for run in troupe.runs.each(finishedAfter=run.finished_at, **filters)] for run in (first, second)]
    before = [run.id for run in troupe.runs.each(finishedAfter=first.finished_at, finishedBefore=second.finished_at)]
    print(json.dumps({"runs": [first.id, second.id], "since": since, "before": before}))
