"""The ten steps of a scripted model: each uses ids, names or values from the results of the steps before."""

import json
import re
from typing import Any

Calls = list[tuple[str, dict[str, Any]]]

FIGURE = "import matplotlib.pyplot as plt\nplt.plot(kept)\nplt.show()"
TABLE = 'import pandas as pd\nframe = pd.DataFrame({"n": kept, "square": [n * n for n in kept]})\nframe'
NUMBERS = {"title": "Steps", "cells": [{"cellId": "numbers", "code": "numbers = [1, 2, 3]"}]}


def next_calls(results: list[str]) -> Calls | None:
    """Returns the calls of the next step, or None at the end. `results` has the text of the results of each step so far."""
    if not results:
        return [("open_notebook", NUMBERS)]
    found = re.search(r"nb_\w+", results[0])
    notebook = {"notebookId": found[0] if found else ""}
    last = results[-1]

    def python(code: str, **more: Any) -> tuple[str, dict[str, Any]]:
        return ("run_python", {**notebook, "code": code, **more})

    limit = "total = sum(numbers) * 7" if "timed_out" in last else "no limit was seen"
    the_sum = re.search(r"\b10\b", last)
    steps: list[Calls] = [
        [("run_cells", {**notebook, "cellIds": ["numbers"]})],
        [python("kept = numbers + [4]\nsum(kept)")],
        [python(f"kept.remove({the_sum[0] if the_sum else 4})")],  # 10 is the sum, so this is an error
        [python(TABLE if "ValueError" in last else "no error was seen")],
        [python(FIGURE)],
        [python("frame.square.sum()"), python("frame.square.max()")],
        [python("import time\ntime.sleep(600)", timeoutS=1)],
        [("edit_cells", {**notebook, "edits": [{"type": "create", "code": limit}]})],
        [python("total")],
    ]
    return steps[len(results) - 1] if len(results) <= len(steps) else None


def conclusion(results: list[str]) -> str:
    """Returns the last answer of the model."""
    total = re.search(r"\b42\b", results[-1])
    return f"The total is {total[0] if total else 'unknown'}."


def report(answer: str, results: list[str], pictures: int) -> None:
    """Prints the messages that the model has seen, as JSON."""
    print(json.dumps({"answer": answer, "results": results, "pictures": pictures}))
