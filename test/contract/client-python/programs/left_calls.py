"""Makes a call after an abandoned one, and prints its result."""

import asyncio
import json

from troupe_client import AsyncSession, AsyncTroupe

SLOW_TO_END = """
import time
try:
    print("begun", flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    time.sleep(1)
"""


async def leave(session: AsyncSession) -> None:
    """Begins a code call and leaves it while it runs."""
    call = asyncio.create_task(session.code(SLOW_TO_END))
    async for event in session.events():
        if event.type == "console-output":
            break
    call.cancel()
    await asyncio.wait([call])


async def main() -> None:
    async with AsyncTroupe() as troupe:
        notebook = await troupe.notebooks.create(cells={"a": "x = 7"})
        async with await troupe.open(notebook) as session:
            await leave(session)
            code = await session.code("1 + 1")
            await leave(session)
            run = await session.run()
        print(json.dumps([code.text, run.status]))


asyncio.run(main())
