"""Runs a notebook 50 times, each run with its events, while another client follows the whole
session. Prints the events of each run, of the follower, and the results.
"""

import asyncio
import json
import os

from troupe_client import AsyncTroupe

RUNS = 50


async def main() -> None:
    async with AsyncTroupe() as troupe:
        notebook = await troupe.notebooks.create(cells={"a": "import time\nprint('begin')\ntime.sleep(0.05)\nprint('end')"})
        async with await troupe.open(notebook) as session:
            followed: list[tuple[str, str]] = []
            ready = asyncio.Event()

            async def follow() -> None:
                async for event in session.events():
                    if event.type == "session.replayed":
                        ready.set()
                    if event.type == "run-status":
                        followed.append((event.data.run_id, event.data.status))

            follower = asyncio.create_task(follow())
            await ready.wait()
            runs = []
            for _ in range(RUNS):
                run = await session.start()
                events = [event async for event in run]
                result = await run.result()
                runs.append(
                    {
                        "id": run.id,
                        "ids": [event.id for event in events],
                        "printed": "".join(e.data.text for e in events if e.type == "console-output"),
                        "end": events[-1].data.status if events else None,
                        "result": result.status,
                    }
                )
        await follower
        listed = [run.id async for run in troupe.runs.each()]
    print(json.dumps({"runs": runs, "followed": followed, "listed": listed}))


asyncio.run(main())
