"""Submitted runs, and the queue that keeps calls of one session from meeting."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Generic, TypeVar

from .._errors import ApiError, TroupeError
from .._platform import AsyncLock, aclosing, async_at_end, async_sleep
from .._results import RunOutcome, image_assets
from ..models import AgentRun, NotebookRun
from .resources import AsyncRuns
from .transport import AsyncTransport

Event = TypeVar("Event")
T = TypeVar("T")

# Within the usual timeouts of proxies.
_WAIT_S = 50
# How long a call without a timeout waits for the end of abandoned code.
_BUSY_S = 60
_PAUSE_S = 0.1


class AsyncRunHandle(Generic[Event]):
    """
    A run that was submitted. Iterating over it yields its events, from the first to the end; `result()` waits for the end
    without them. Both can be done several times.
    """

    def __init__(self, transport: AsyncTransport, id: str, events_path: str, union: Any, last_event_id: str) -> None:
        self.id = id
        self._runs = AsyncRuns(transport)
        self._transport = transport
        self._events_path = events_path
        self._union = union
        self._last_event_id = last_event_id

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Yields the events of the run, without those that the server no longer keeps."""
        is_state = False  # whether events report the current state, because some were missed
        async with aclosing(self._transport.follow(self._events_path, self._union, self._last_event_id)) as events:
            async for event in events:
                if event.type == "session.snapshot":
                    is_state = True
                elif event.type == "session.replayed":
                    is_state = False
                    if _is_over(await self._runs.get(self.id)):
                        return
                elif event.run_id == self.id and (not is_state or event.type == "run-status"):
                    yield event
                    if event.type == "run-status" and (event.data.status != "running" or event.data.stale is True):
                        return

    async def result(self) -> RunOutcome:
        """
        Waits for the end of the run and returns it with its outputs, whether it completed, failed or was cancelled. A run
        whose server died is returned as it is: `run.stale` is True then, and only cancelling ends it.
        """
        run = await self._ended()
        assets = {id: await self._runs.asset(self.id, id) for id in image_assets(run)}
        return RunOutcome(run, assets)

    async def result_or_cancel(self) -> RunOutcome:
        """Does the same as `result`, and cancels the run when the caller leaves: when it is cancelled, or interrupted by a signal."""
        try:
            return await self.result()
        except TroupeError:
            raise
        except BaseException:
            await async_at_end(self.cancel)
            raise

    async def cancel(self) -> None:
        """Begins to cancel the run. Does nothing when it has ended."""
        await self._runs.cancel(self.id)

    async def _ended(self) -> NotebookRun | AgentRun:
        while True:
            run = await self._runs.get(self.id, wait=_WAIT_S)
            if _is_over(run):
                return run

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"


class AsyncQueue:
    """
    Makes the calls of one session wait for each other. The server refuses a call while another one runs, and parallel calls
    of tools would meet that.
    """

    def __init__(self) -> None:
        self._lock = AsyncLock()
        self._last: AsyncRunHandle[Any] | None = None
        self._may_be_busy = False  # whether a call got no answer, so that the kernel may still run it

    async def __aenter__(self) -> None:
        await self._lock.acquire()
        try:
            if self._last is not None:
                await self._last._ended()
        except ApiError:
            pass  # the run cannot be read any more, such as one that was deleted
        except BaseException:
            self._lock.release()
            raise
        self._last = None

    async def __aexit__(self, *failure: object) -> None:
        self._lock.release()

    async def call(self, begin: Callable[[], Awaitable[T]], timeout: int | None = None) -> T:
        """
        Returns the result of `begin`, which sends a request. The server interrupts code whose caller has left, and refuses
        other calls until that code has ended: after a call without an answer the next one is repeated for `timeout` seconds.
        """
        since = time.monotonic()
        while True:
            try:
                result = await begin()
            except ApiError as error:
                is_late = time.monotonic() - since > (timeout or _BUSY_S)
                if error.code != "session_busy" or not self._may_be_busy or is_late:
                    raise
            except BaseException:
                self._may_be_busy = True
                raise
            else:
                self._may_be_busy = False
                return result
            await async_sleep(_PAUSE_S)

    def runs(self, handle: AsyncRunHandle[Any]) -> None:
        """Makes the next call wait for the end of this run."""
        self._last = handle


def _is_over(run: NotebookRun | AgentRun) -> bool:
    return run.status != "running" or run.stale is True
