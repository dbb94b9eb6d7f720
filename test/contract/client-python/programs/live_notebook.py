"""An open notebook that is changed and used: cells, UI elements, completions, and its address. Prints the outcome."""

import asyncio
import json

from troupe_client import ApiError, AsyncTroupe, Troupe
from troupe_client.models import CreateCell, DeleteCell, SetCellCode

CELLS = {
    "imports": "import marimo as mo",
    "slider": "n = mo.ui.slider(1, 50, value=5)\nn",
    "table": "rows = mo.ui.table([{'city': 'Oslo'}, {'city': 'Bergen'}])\nrows",
    "square": "n.value ** 2",
}
SEARCH = {"query": "oslo", "page_size": 10, "page_number": 0}


def live(troupe: Troupe) -> dict[str, object]:
    notebook = troupe.notebooks.create(cells=CELLS)
    [summary] = [summary for summary in troupe.notebooks.each() if summary.id == notebook.id]
    with troupe.open(notebook) as session:
        session.run()
        slider, table = session.code("print(n._id); print(rows._id)").stdout.split()
        moved = session.set_ui_values({slider: 8, "gone-0": 1}, timeout=60)
        found = session.call_function(table, "search", SEARCH)
        missing = session.call_function(table, "nothing")
        completions = session.complete("n.val", cell="square")
        versions = {cell.cell_id: cell.version for cell in session.record().cells}
        changed = session.change(
            [
                SetCellCode(cell_id="square", code="n.value ** 3", version=versions["square"]),
                CreateCell(code="1 + 1", cell_id="sum", after="square"),
                DeleteCell(cell_id="table"),
            ]
        )
        result = session.run("square").cells["square"].text
        try:
            session.change([{"type": "set-code", "cellId": "square", "code": "0", "version": versions["square"]}])
        except ApiError as error:
            stale = error.code
        try:
            session.change([DeleteCell(cell_id="sum")], expected_updated_at=notebook.updated_at)
        except ApiError as error:
            outdated = error.code
        return {
            "moved": [moved.status, [cell.cell_id for cell in moved.cells], moved.unknown],
            "found": found.success and "Oslo" in json.dumps(found.value) and "Bergen" not in json.dumps(found.value),
            "missing": missing.error and missing.error.type,
            "completions": [option.name for option in completions.options],
            "changed": [[cell.cell_id, cell.version is None] for cell in changed.cells],
            "cells": [cell.cell_id for cell in session.record().cells],
            "result": result,
            "refused": [stale, outdated],
            "urls": [session.url(), troupe.notebooks.url(notebook), troupe.notebooks.url(summary)],
        }


async def in_turn() -> list[str]:
    """Uses a session at the same time from several tasks. The calls wait for each other, so none is refused."""
    async with AsyncTroupe() as troupe:
        async with await troupe.open(await troupe.notebooks.create(cells=CELLS)) as session:
            await session.run()
            slider = (await session.code("print(n._id)")).stdout.strip()
            calls = [session.set_ui_values({slider: value}) for value in (2, 3)]
            moved = await asyncio.gather(*calls)
            outcome, again = await asyncio.gather(session.run("square"), session.set_ui_values({slider: 4}))
            return [outcome.status, again.status, *(result.status for result in moved)]


with Troupe() as troupe:
    print(json.dumps({**live(troupe), "inTurn": asyncio.run(in_turn())}))
