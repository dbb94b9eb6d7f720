"""The client of one server."""

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self, TypeVar
from weakref import WeakValueDictionary

import httpx2

from .._platform import async_at_end
from .._retrying import RETRIES
from ..models import AgentSession, Environment, ModelUsage, Notebook, NotebookSession, OwnAccount, WorkspaceUsage
from .resources import AsyncDatasources, AsyncFiles, AsyncHooks, AsyncJobs, AsyncNotebooks, AsyncRuns, _given, _id
from .runs import AsyncQueue
from .sessions import AsyncConversation, AsyncSandbox, AsyncSession, _closed, _environment_path
from .transport import TIMEOUT_S, AsyncTransport

T = TypeVar("T")
OpenedSession = TypeVar("OpenedSession", bound=AsyncSession)


class AsyncTroupe:
    """
    A client of one server, for one caller in one workspace. It repeats requests after lost connections and when the server
    asks for it; every request takes effect once.
    """

    def __init__(
        self,
        base_url: str | None = None,
        *,
        access_token: str | None = None,
        workspace_id: str | None = None,
        retries: int = RETRIES,
        timeout: float = TIMEOUT_S,
        http: httpx2.AsyncClient | None = None,
    ) -> None:
        """
        The URL is that of the server, without `/api/v3`. URL, token and workspace are read from `SERVICE_BASE_URL`,
        `SERVICE_ACCESS_TOKEN` and `SERVICE_WORKSPACE_ID` when they are not given. `retries` is how often a request is
        repeated at most. `timeout` is the number of seconds after which a silent server counts as lost. `http` sends the
        requests, and is not closed with the client. Raises `ValueError` without a URL.
        """
        url = base_url or os.environ.get("SERVICE_BASE_URL")
        if not url:
            raise ValueError("Give the URL of the server, or set SERVICE_BASE_URL.")
        token = access_token or os.environ.get("SERVICE_ACCESS_TOKEN")
        workspace = workspace_id or os.environ.get("SERVICE_WORKSPACE_ID")
        self._transport = AsyncTransport(url, token, workspace, retries, timeout, http)
        self._queues: WeakValueDictionary[str, AsyncQueue] = WeakValueDictionary()
        self.notebooks = AsyncNotebooks(self._transport)
        self.files = AsyncFiles(self._transport)
        self.datasources = AsyncDatasources(self._transport)
        self.runs = AsyncRuns(self._transport)
        self.jobs = AsyncJobs(self._transport)
        self.hooks = AsyncHooks(self._transport)

    async def open(
        self,
        notebook: Notebook | str,
        *,
        mode: Literal["edit", "run"] | None = None,
        arguments: Sequence[str] | None = None,
        ttl: int | None = None,
        idle_timeout: int | None = None,
    ) -> AsyncSession:
        """
        Opens a notebook with a kernel, in an environment of its own, and returns the session when it is ready. `arguments`
        are the command-line arguments of the notebook. The session ends by itself after `ttl` seconds, and after
        `idle_timeout` seconds without use. Raises `SessionFailed` when it cannot be opened.
        """
        members = _given(mode=mode, arguments=arguments, ttlS=ttl, idleTimeoutS=idle_timeout)
        return await self._open(AsyncSession, _id(notebook), members)

    def session(self, session_id: str) -> AsyncSession:
        """Returns a session that is open. Closing it keeps its environment."""
        return AsyncSession(self._transport, self._queue(session_id), session_id, None)

    async def sandbox(
        self, *, ttl: int | None = None, idle_timeout: int | None = None, datasources: Sequence[str] | None = None
    ) -> AsyncSandbox:
        """
        Opens a new notebook for code calls, which is deleted when the sandbox closes. The session ends by itself after
        `ttl` seconds, and after `idle_timeout` seconds without use.
        """
        body = {"title": "Sandbox", **_given(datasourceSlugs=datasources)}
        notebook = await self._transport.create("/api/v3/notebooks", Notebook, json=body, undo=self.notebooks.delete)
        try:
            return await self._open(AsyncSandbox, notebook.id, _given(ttlS=ttl, idleTimeoutS=idle_timeout))
        except BaseException:
            await async_at_end(lambda: self.notebooks.delete(notebook))
            raise

    async def converse(
        self,
        session: AsyncSession | None = None,
        *,
        id: str | None = None,
        model: str | None = None,
        instructions: str | None = None,
        datasources: Sequence[str] | None = None,
    ) -> AsyncConversation:
        """
        Opens a conversation with an agent of the server: about the notebook of a session, in which the agent then works, or
        about none. `id` is that of a saved conversation, to continue it.
        """
        environment = None if session is None else (await session.record()).environment_id
        own = None
        if environment is None:
            environment = own = await self._new_environment()
        config = _given(model=model, instructions=instructions)
        body = {
            "environmentId": environment,
            **_given(
                notebookSessionId=None if session is None else session.id,
                id=id,
                config=config or None,
                context=None if datasources is None else {"datasourceSlugs": datasources},
            ),
        }

        def conversation(opened: AgentSession) -> AsyncConversation:
            return AsyncConversation(self._transport, self._queue(opened.session_id), opened.session_id, own)

        async def undo(opened: AgentSession) -> None:
            if id is None:  # others may have opened a saved conversation
                await conversation(opened).close()

        try:
            return conversation(await self._transport.create("/api/v3/agent-sessions", AgentSession, json=body, undo=undo))
        except BaseException:
            if own is not None:
                await async_at_end(lambda: self._close_environment(own))
            raise

    async def me(self) -> OwnAccount:
        """Returns the user, the token and the workspaces that it opens."""
        return await self._transport.json("GET", "/api/v3/me", OwnAccount)

    async def usage(self, **filters: Any) -> WorkspaceUsage:
        """
        Returns the disk space that the workspace uses, and a page of the tokens of models. Days are chosen with `to="2026-06-30"`
        and, because `from` is a word of Python, `**{"from": "2026-06-01"}`.
        """
        return await self._transport.json("GET", "/api/v3/usage", WorkspaceUsage, query=filters)

    async def model_usage(self, first: str | None = None, last: str | None = None) -> AsyncIterator[ModelUsage]:
        """Yields the tokens of models by day, member and model, for the UTC days from `first` to `last`: 31 days until today without them."""
        after: str | None = None
        while True:
            days = _given(**{"from": first, "to": last, "after": after})
            models = (await self.usage(**days, limit=100)).models
            for sum in models.items:
                yield sum
            after = models.next_cursor
            if after is None:
                return

    async def request(
        self,
        method: str,
        path: str,
        type: type[T],
        *,
        json: Any = None,
        query: Mapping[str, str | int | float | bool | None] | None = None,
    ) -> T:
        """Sends any other request, and returns the JSON of its response as a value of `type`, such as one of `models`."""
        return await self._transport.json(method, path, type, json=json, query=query)

    async def close(self) -> None:
        """Closes the connections. Sessions stay open."""
        await self._transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def _open(self, type: type[OpenedSession], notebook_id: str, members: Mapping[str, Any]) -> OpenedSession:
        environment = await self._new_environment()
        session = type(self._transport, self._queue(notebook_id), notebook_id, environment)
        body = {"notebookId": notebook_id, "environmentId": environment, **members}

        async def undo(_: NotebookSession) -> None:
            await AsyncSession._close(session)

        try:
            await self._transport.create("/api/v3/notebook-sessions", NotebookSession, json=body, undo=undo)
        except BaseException:
            await async_at_end(lambda: self._close_environment(environment))
            raise
        try:
            await session._until_ready()
        except BaseException:
            await async_at_end(lambda: AsyncSession._close(session))
            raise
        return session

    async def _new_environment(self) -> str:
        async def undo(created: Environment) -> None:
            await self._close_environment(created.environment_id)

        created = await self._transport.create("/api/v3/execution-environments", Environment, json={}, undo=undo)
        return created.environment_id

    async def _close_environment(self, id: str) -> None:
        await _closed(self._transport, _environment_path(id))

    def _queue(self, session_id: str) -> AsyncQueue:
        return self._queues.setdefault(session_id, AsyncQueue())
