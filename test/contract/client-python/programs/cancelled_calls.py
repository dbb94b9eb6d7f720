"""
Leaves calls before and after each of their requests: asynchronous ones by cancelling them, synchronous ones by an exception as Ctrl-C
raises it. Prints a line for each way, and continues when it gets a line.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2

from troupe_client import AsyncSession, AsyncTroupe, Session, Troupe

ENDLESS = {"endless": "while True: pass"}


class Leaving:
    """Counts requests, and calls `leave` before or after one of them."""

    def __init__(self) -> None:
        self.requests = 0
        self.at = 0
        self.moment = ""
        self.leave: Callable[[], object] = lambda: None

    def arm(self, at: int, moment: str, leave: Callable[[], object]) -> None:
        self.requests, self.at, self.moment, self.leave = 0, at, moment, leave

    def meet(self, moment: str) -> None:
        if moment == "before":
            self.requests += 1
        if self.requests == self.at and moment == self.moment:
            self.at = 0
            self.leave()


class AsyncLeaving(Leaving, httpx2.AsyncHTTPTransport):
    def __init__(self) -> None:
        Leaving.__init__(self)
        httpx2.AsyncHTTPTransport.__init__(self)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.meet("before")
        response = await super().handle_async_request(request)
        self.meet("after")
        return response


class SyncLeaving(Leaving, httpx2.HTTPTransport):
    def __init__(self) -> None:
        Leaving.__init__(self)
        httpx2.HTTPTransport.__init__(self)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.meet("before")
        response = super().handle_request(request)
        self.meet("after")
        return response


def interrupt() -> None:
    raise KeyboardInterrupt


def tell(way: str) -> None:
    print(way, flush=True)
    sys.stdin.readline()


AsyncCall = Callable[[AsyncTroupe, AsyncSession, str], Awaitable[Any]]
SyncCall = Callable[[Troupe, Session, str], Any]


async def open_and_close(troupe: AsyncTroupe, _: AsyncSession, notebook: str) -> None:
    async with await troupe.open(notebook):
        pass


async def sandbox(troupe: AsyncTroupe, _: AsyncSession, __: str) -> None:
    async with await troupe.sandbox():
        pass


async def converse(troupe: AsyncTroupe, _: AsyncSession, __: str) -> None:
    async with await troupe.converse():
        pass


async def run(_: AsyncTroupe, session: AsyncSession, __: str) -> None:
    await session.run("endless", timeout=1)


ASYNC: dict[str, AsyncCall] = {"open": open_and_close, "sandbox": sandbox, "converse": converse, "run": run}


def sync_open(troupe: Troupe, _: Session, notebook: str) -> None:
    with troupe.open(notebook):
        pass


def sync_sandbox(troupe: Troupe, _: Session, __: str) -> None:
    with troupe.sandbox():
        pass


def sync_run(_: Troupe, session: Session, __: str) -> None:
    session.run("endless", timeout=1)


SYNC: dict[str, SyncCall] = {"open": sync_open, "sandbox": sync_sandbox, "run": sync_run}


async def asynchronous(session_id: str, notebook: str) -> None:
    transport = AsyncLeaving()
    async with httpx2.AsyncClient(transport=transport) as http, AsyncTroupe(http=http) as troupe:
        session = troupe.session(session_id)
        for name, call in ASYNC.items():
            transport.arm(0, "", lambda: None)
            await call(troupe, session, notebook)
            for at in range(1, transport.requests + 1):
                for moment in ("before", "after"):
                    task = asyncio.ensure_future(call(troupe, session, notebook))
                    transport.arm(at, moment, task.cancel)
                    try:
                        await task
                        end = "ended"
                    except BaseException as error:
                        end = type(error).__name__
                    tell(f"async {name} {moment} {at}: {end}")


def synchronous(session_id: str, notebook: str) -> None:
    transport = SyncLeaving()
    with httpx2.Client(transport=transport) as http, Troupe(http=http) as troupe:
        session = troupe.session(session_id)
        for name, call in SYNC.items():
            transport.arm(0, "", lambda: None)
            call(troupe, session, notebook)
            # The last two requests of a session close it. Ctrl-C in them ends the closing.
            last = transport.requests - {"open": 2, "sandbox": 3}.get(name, 0)
            for at in range(1, last + 1):
                for moment in ("before", "after"):
                    transport.arm(at, moment, interrupt)
                    try:
                        call(troupe, session, notebook)
                        end = "ended"
                    except BaseException as error:
                        end = type(error).__name__
                    tell(f"sync {name} {moment} {at}: {end}")


if __name__ == "__main__":
    asyncio.run(asynchronous(*sys.argv[1:]))
    synchronous(*sys.argv[1:])
