"""Follows a run, and asks for the state of its session in the loop and after it. Prints the states."""

import json

from troupe_client import Troupe

WAITING = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)"

with Troupe() as troupe, troupe.open(troupe.notebooks.create(cells={"waiting": WAITING})) as session:
    states = [session.record().status]
    for event in session.start():
        if event.type == "run-status" and event.data.status == "running":
            states.append(session.record().status)
            troupe.files.write("go", "")
    states.append(session.record().status)
print(json.dumps(states))
