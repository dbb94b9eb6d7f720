"""Reads a run and follows a session of a server that is newer than the client. Prints the received data.
"""

import json

from troupe_client import Troupe

with Troupe() as troupe:
    session = troupe.session("nb_1")
    run = session.start("a")
    types = [event.type for event in run]
    result = run.result()
    print(
        json.dumps(
            {
                "types": types,
                "status": result.status,
                "cells": {id: cell.text for id, cell in result.cells.items()},
                "listed": [len(run.output.parts) for run in troupe.runs.each(include="output") if run.output],
            }
        )
    )
