"""
Locks, sleeps, closing of generators, and work that must be done, for the asynchronous client (with asyncio) and for the synchronous
one.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import aclosing, closing, suppress
from typing import Any, TypeVar

__all__ = [
    "AsyncLock",
    "Lock",
    "aclosing",
    "async_at_end",
    "async_completed",
    "async_sleep",
    "at_end",
    "closing",
    "completed",
    "sleep",
]

T = TypeVar("T")

AsyncLock = asyncio.Lock
Lock = threading.Lock
async_sleep = asyncio.sleep
sleep = time.sleep

# How long a cancelled call waits for work that goes on nevertheless.
_PATIENCE_S = 10.0
# The event loop keeps only weak references to tasks.
_tasks: set[asyncio.Task[Any]] = set()


async def async_completed(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Returns the result of `work`, which goes on to its end when the caller is cancelled. The caller waits ten seconds for it then."""
    task = asyncio.ensure_future(work())
    _tasks.add(task)
    task.add_done_callback(_forget)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task], timeout=_PATIENCE_S)
        raise


async def async_at_end(work: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """Runs `work` before an exception is raised again. Failures of `work` are ignored, so that the exception stays visible."""
    with suppress(Exception):
        await async_completed(work)


def completed(work: Callable[[], T]) -> T:
    """Returns the result of `work`."""
    return work()


def at_end(work: Callable[[], object]) -> None:
    """Runs `work` before an exception is raised again. Failures of `work` are ignored, so that the exception stays visible."""
    with suppress(Exception):
        work()


def _forget(task: asyncio.Task[Any]) -> None:
    _tasks.discard(task)
    if not task.cancelled():
        task.exception()  # otherwise asyncio logs the failure of an abandoned task
