"""Open notebooks, scratch notebooks, and conversations."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import quote

from .._errors import ApiError, SessionFailed
from .._platform import aclosing, async_completed
from .._results import CodeOutcome, RunOutcome
from ..models import (
    AgentStreamEvent,
    CellChange,
    ChangedCells,
    CodeResult,
    Completions,
    FunctionResult,
    NotebookSession,
    NotebookStreamEvent,
    UiValuesResult,
)
from .resources import AsyncNotebooks, AsyncRuns, _given
from .runs import AsyncQueue, AsyncRunHandle
from .transport import GONE, AsyncTransport


class AsyncSession:
    """
    A notebook that is open, with a kernel. As a context manager it closes the session at the end. Calls of one session wait
    for each other.
    """

    def __init__(self, transport: AsyncTransport, queue: AsyncQueue, id: str, environment_id: str | None) -> None:
        self.id = id
        """The id of the session, which is that of its notebook."""
        self._transport = transport
        self._queue = queue
        self._environment_id = environment_id
        self._path = f"/api/v3/notebook-sessions/{quote(id, safe='')}"

    async def start(
        self,
        *cells: str,
        code: Mapping[str, str] | None = None,
        cache_mode: Literal["default", "no-cache", "no-store"] | None = None,
        timeout: int | None = None,
    ) -> AsyncRunHandle[NotebookStreamEvent]:
        """
        Starts to run cells and the cells that they depend on; all cells when none are named. `code` replaces the code of
        cells by their ids, which then run as well. `timeout` is the number of seconds after which the run is interrupted.
        Waits for the end of the session's run before.
        """
        codes = dict(code or {})
        named = [{"cellId": id, **_given(code=codes.get(id))} for id in dict.fromkeys([*cells, *codes])]
        body = {
            **({"type": "cells", "cells": named} if named else {"type": "all"}),
            **_given(cacheMode=cache_mode, timeoutS=timeout),
        }
        async with self._queue:
            submitted = await self._queue.call(lambda: _submitted(self._transport, f"{self._path}/executions", body), timeout)
            handle: AsyncRunHandle[NotebookStreamEvent]
            handle = _handle(self._transport, submitted, f"{self._path}/events", NotebookStreamEvent)
            self._queue.runs(handle)
            return handle

    async def run(
        self,
        *cells: str,
        code: Mapping[str, str] | None = None,
        cache_mode: Literal["default", "no-cache", "no-store"] | None = None,
        timeout: int | None = None,
    ) -> RunOutcome:
        """
        Runs cells as `start` does, and returns the run when it has ended. When the caller leaves meanwhile, because it is
        cancelled or interrupted by a signal, the run is cancelled.
        """
        return await (await self.start(*cells, code=code, cache_mode=cache_mode, timeout=timeout)).result_or_cancel()

    async def code(self, source: str, *, keep: bool = False, timeout: int | None = None) -> CodeOutcome:
        """
        Runs Python in the kernel, outside of the cells, and returns its result, also when the code fails. With `keep` the
        names that it makes stay for later calls with `keep`. `timeout` is the number of seconds after which the code is
        interrupted. Raises `CodeInterrupted` when the connection ends meanwhile.
        """
        body = {"code": source, **({"keep": True} if keep else {}), **_given(timeoutS=timeout)}
        async with self._queue:
            result = await self._queue.call(
                lambda: self._transport.interruptible(
                    "/api/cee/kernel/execute", CodeResult, json=body, headers={"service-session-id": self.id}
                ),
                timeout,
            )
        return CodeOutcome(result)

    async def change(
        self, changes: Sequence[CellChange | Mapping[str, Any]], *, expected_updated_at: str | None = None
    ) -> ChangedCells:
        """
        Changes cells, also while the session is busy: all changes in their order, or none. Nothing runs. A change is one of
        `models`, such as `SetCellCode`. Raises `ApiError` with `stale_update` when the cell of a change has another `version`
        than the change names, or the notebook another `updated_at` than the expected one.
        """
        body = {"changes": changes, **_given(expectedUpdatedAt=expected_updated_at)}
        return await self._transport.json("POST", f"{self._path}/changes", ChangedCells, json=body)

    async def set_ui_values(self, values: Mapping[str, Any], *, timeout: int | None = None) -> UiValuesResult:
        """
        Sets values of UI elements, by the ids of the elements, and returns how the cells that depend on them ended. Their
        outputs are events. `timeout` is the number of seconds after which the cells are interrupted.
        """
        body = {"values": values, **_given(timeoutS=timeout)}
        async with self._queue:
            return await self._queue.call(
                lambda: self._transport.json("POST", f"{self._path}/ui-values", UiValuesResult, json=body), timeout
            )

    async def call_function(
        self, element: str, function: str, args: Mapping[str, Any] | None = None, *, timeout: int | None = None
    ) -> FunctionResult:
        """
        Calls a function of the UI element with this id, such as `search` of a table. Returns also when the function fails:
        check `success`. `timeout` is the number of seconds after which it is interrupted, 60 by default. Raises
        `CodeInterrupted` when the connection ends meanwhile.
        """
        body = {"namespace": element, "functionName": function, "args": args or {}, **_given(timeoutS=timeout)}
        async with self._queue:
            return await self._queue.call(
                lambda: self._transport.interruptible(f"{self._path}/function-calls", FunctionResult, json=body), timeout
            )

    async def complete(self, code: str, *, cell: str | None = None) -> Completions:
        """
        Returns the names that may follow this code, which is that of a cell up to the cursor. The session may be busy. `cell`
        is the id of the cell.
        """
        body = {"code": code, **_given(cellId=cell)}
        return await self._transport.json("POST", f"{self._path}/completions", Completions, json=body)

    async def url(self) -> str:
        """Returns the address of the notebook in a browser, for people who have signed in there."""
        return self._transport.address((await self.record()).url)

    def events(self, last_event_id: str = "") -> AsyncGenerator[NotebookStreamEvent, None]:
        """
        Returns the current state as events and then live events, each once, until the session closes. With the `id` of an
        event it continues after that one.
        """
        return self._transport.follow(f"{self._path}/events", NotebookStreamEvent, last_event_id)

    async def asset(self, asset_id: str) -> bytes:
        """
        Returns the bytes of a large output, which events name with an `asset_id` in place of `data`. Raises `ApiError` with the
        code `not_found` when the notebook shows it no more: its cell has another output, or code was called again.
        """
        return (await self._transport.request("GET", f"{self._path}/assets/{quote(asset_id, safe='')}")).content

    async def record(self) -> NotebookSession:
        """Returns the present state of the session. Its status is `busy` during a run, and `ready` once the run has ended."""
        return await self._transport.json("GET", self._path, NotebookSession)

    async def interrupt(self) -> None:
        """Interrupts the run or the code call of the session."""
        await self._transport.request("POST", f"{self._path}/interrupt", json={})

    async def close(self) -> None:
        """Closes the session, and the environment that was created for it. The notebook and its runs stay."""
        await async_completed(self._close)

    async def _close(self) -> None:
        await _closed(self._transport, self._path)
        if self._environment_id is not None:
            await _closed(self._transport, _environment_path(self._environment_id))

    async def _until_ready(self) -> None:
        status = "closed"
        async with aclosing(self.events()) as events:
            async for event in events:
                if event.type in ("session.snapshot", "session.status"):
                    status = event.data.status
                if status in ("ready", "busy", "failed"):
                    break
        if status not in ("ready", "busy"):
            error = (await self.record()).error
            code, message = (status, f"The session is {status}.") if error is None else (error.code, error.message)
            raise SessionFailed(code, message)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()


class AsyncSandbox(AsyncSession):
    """A new notebook for code calls, whose names stay from call to call. It is deleted when the sandbox closes."""

    async def code(self, source: str, *, keep: bool = True, timeout: int | None = None) -> CodeOutcome:
        """Runs Python as `Session.code` does. Names stay for later calls unless `keep` is False."""
        return await super().code(source, keep=keep, timeout=timeout)

    async def close(self) -> None:
        """Closes the session and deletes the notebook with its runs."""
        await async_completed(self._close)

    async def _close(self) -> None:
        try:
            await super()._close()
        finally:
            await AsyncNotebooks(self._transport).delete(self.id)


class AsyncConversation:
    """A conversation with an agent of the server. As a context manager it closes the conversation, whose history stays."""

    def __init__(self, transport: AsyncTransport, queue: AsyncQueue, id: str, environment_id: str | None) -> None:
        self.id = id
        self._transport = transport
        self._queue = queue
        self._environment_id = environment_id
        self._path = f"/api/v3/agent-sessions/{quote(id, safe='')}"

    async def start(self, prompt: str, *, timeout: int | None = None) -> AsyncRunHandle[AgentStreamEvent]:
        """Sends a prompt. `timeout` is the number of seconds after which the agent is interrupted."""
        body = {"prompt": prompt, **_given(timeoutS=timeout)}
        async with self._queue:
            submitted = await self._queue.call(lambda: _submitted(self._transport, f"{self._path}/runs", body), timeout)
            handle: AsyncRunHandle[AgentStreamEvent]
            handle = _handle(self._transport, submitted, f"{self._path}/events", AgentStreamEvent)
            self._queue.runs(handle)
            return handle

    async def ask(self, prompt: str, *, timeout: int | None = None) -> RunOutcome:
        """
        Sends a prompt and returns its run when that has ended: `answer` is the answer in Markdown. When the caller leaves
        meanwhile, the run is cancelled.
        """
        return await (await self.start(prompt, timeout=timeout)).result_or_cancel()

    def events(self, last_event_id: str = "") -> AsyncGenerator[AgentStreamEvent, None]:
        """Returns the history as events and then live events, each once, until the conversation closes."""
        return self._transport.follow(f"{self._path}/events", AgentStreamEvent, last_event_id)

    async def close(self) -> None:
        """Closes the conversation, and the environment that was created for it."""
        await async_completed(self._close)

    async def _close(self) -> None:
        await _closed(self._transport, self._path)
        if self._environment_id is not None:
            await _closed(self._transport, _environment_path(self._environment_id))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()


async def _closed(transport: AsyncTransport, path: str) -> None:
    """Closes a resource. Does nothing when it is closed."""
    try:
        await transport.request("DELETE", path)
    except ApiError as error:
        if error.code not in GONE:
            raise


def _environment_path(id: str) -> str:
    return f"/api/v3/execution-environments/{quote(id, safe='')}"


async def _submitted(transport: AsyncTransport, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Submits a run, and cancels it when the caller leaves meanwhile."""

    async def cancel(submitted: dict[str, Any]) -> None:
        await AsyncRuns(transport).cancel(submitted["runId"])

    return await transport.create(path, dict[str, Any], json=body, undo=cancel)


def _handle(transport: AsyncTransport, submitted: Mapping[str, Any], events_path: str, union: Any) -> AsyncRunHandle[Any]:
    return AsyncRunHandle(transport, submitted["runId"], events_path, union, submitted.get("lastEventId", ""))
