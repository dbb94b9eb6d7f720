"""The main job, an agent and a datasource, in the way of the README. Prints the outcome."""

import asyncio
import json
import os

from troupe_client import ApiError, AsyncTroupe, Troupe
from troupe_client.models import ConsoleOutputEvent


def main_job() -> dict[str, object]:
    with Troupe() as troupe:
        cells = {"numbers": "n = [1, 2, 3]", "answer": "print(sum(n))\nsum(n) * 10"}
        notebook = troupe.notebooks.create(cells=cells, title="From Python")
        printed = ""
        with troupe.open(notebook) as session:
            run = session.start("answer")
            events = list(run)
            for event in events:
                if event.type == "console-output":
                    printed += event.data.text
            result = run.result()
            failed = session.run(code={"numbers": "n = 1 / 0"})
        troupe.files.write("data/sales.csv", "month,amount\n1,10\n2,32\n")
        with troupe.sandbox() as box:
            box.code("import csv; rows = list(csv.DictReader(open('data/sales.csv')))")
            summed = box.code("print('summing'); sum(int(row['amount']) for row in rows)")
            wrong = box.code("rows[7]")
        troupe.datasources.create("made-by-wheel", {"kind": "sqlite", "path": "sales.sqlite"})
        tested = troupe.datasources.test("made-by-wheel").ok
        with troupe.open(notebook) as session, troupe.converse(session) as agent:
            answer = agent.ask("Are you there?").answer
        troupe.datasources.delete("made-by-wheel")
        current = troupe.notebooks.get(notebook.id)
        [version] = troupe.notebooks.versions(notebook)
        same = troupe.notebooks.version(notebook, version.updated_at)
        restored = troupe.notebooks.restore(current, version.updated_at)
        notebooks = [summary.title for summary in troupe.notebooks.each()]
        try:
            troupe.notebooks.get("nb_0")
        except ApiError as error:
            missing = error.code
    return {
        "printed": printed,
        "events": [events[0].type, events[-1].type, len({event.id for event in events}) == len(events)],
        "text": result.cells["answer"].text,
        "stdout": result.cells["answer"].stdout,
        "failed": [failed.status, failed.cells["numbers"].errors[0].type],
        "summed": [summed.text, summed.stdout],
        "wrong": [wrong.success, wrong.errors[0].type],
        "tested": tested,
        "answer": answer,
        "notebooks": notebooks,
        "versions": [version.title, same == current, restored.serialization == current.serialization],
        "missing": missing,
    }


async def asynchronous() -> str:
    async with AsyncTroupe() as troupe:
        notebook = await troupe.notebooks.create(cells={"a": "print('hello')"})
        printed = ""
        async with await troupe.open(notebook) as session:
            run = await session.start()
            async for event in run:
                if isinstance(event, ConsoleOutputEvent):
                    printed += event.data.text
            twice = await asyncio.gather(session.code("1 + 1"), session.code("2 + 2"))
        return printed + " ".join(outcome.text for outcome in twice)


print(json.dumps({**main_job(), "asynchronous": asyncio.run(asynchronous())}))
