# `npm run python-client` writes this file from `_async/client.py`: do not edit it.
"""The client of one server."""

import os
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self, TypeVar
from weakref import WeakValueDictionary

import httpx2

from .._platform import at_end
from .._retrying import RETRIES
from ..models import AgentSession, Environment, ModelUsage, Notebook, NotebookSession, OwnAccount, WorkspaceUsage
from .resources import Datasources, Files, Hooks, Jobs, Notebooks, Runs, _given, _id
from .runs import Queue
from .sessions import Conversation, Sandbox, Session, _closed, _environment_path
from .transport import TIMEOUT_S, Transport

T = TypeVar("T")
OpenedSession = TypeVar("OpenedSession", bound=Session)


class Troupe:
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
        http: httpx2.Client | None = None,
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
        self._transport = Transport(url, token, workspace, retries, timeout, http)
        self._queues: WeakValueDictionary[str, Queue] = WeakValueDictionary()
        self.notebooks = Notebooks(self._transport)
        self.files = Files(self._transport)
        self.datasources = Datasources(self._transport)
        self.runs = Runs(self._transport)
        self.jobs = Jobs(self._transport)
        self.hooks = Hooks(self._transport)

    def open(
        self,
        notebook: Notebook | str,
        *,
        mode: Literal["edit", "run"] | None = None,
        arguments: Sequence[str] | None = None,
        ttl: int | None = None,
        idle_timeout: int | None = None,
    ) -> Session:
        """
        Opens a notebook with a kernel, in an environment of its own, and returns the session when it is ready. `arguments`
        are the command-line arguments of the notebook. The session ends by itself after `ttl` seconds, and after
        `idle_timeout` seconds without use. Raises `SessionFailed` when it cannot be opened.
        """
        members = _given(mode=mode, arguments=arguments, ttlS=ttl, idleTimeoutS=idle_timeout)
        return self._open(Session, _id(notebook), members)

    def session(self, session_id: str) -> Session:
        """Returns a session that is open. Closing it keeps its environment."""
        return Session(self._transport, self._queue(session_id), session_id, None)

    def sandbox(
        self, *, ttl: int | None = None, idle_timeout: int | None = None, datasources: Sequence[str] | None = None
    ) -> Sandbox:
        """
        Opens a new notebook for code calls, which is deleted when the sandbox closes. The session ends by itself after
        `ttl` seconds, and after `idle_timeout` seconds without use.
        """
        body = {"title": "Sandbox", **_given(datasourceSlugs=datasources)}
        notebook = self._transport.create("/api/v3/notebooks", Notebook, json=body, undo=self.notebooks.delete)
        try:
            return self._open(Sandbox, notebook.id, _given(ttlS=ttl, idleTimeoutS=idle_timeout))
        except BaseException:
            at_end(lambda: self.notebooks.delete(notebook))
            raise

    def converse(
        self,
        session: Session | None = None,
        *,
        id: str | None = None,
        model: str | None = None,
        instructions: str | None = None,
        datasources: Sequence[str] | None = None,
    ) -> Conversation:
        """
        Opens a conversation with an agent of the server: about the notebook of a session, in which the agent then works, or
        about none. `id` is that of a saved conversation, to continue it.
        """
        environment = None if session is None else (session.record()).environment_id
        own = None
        if environment is None:
            environment = own = self._new_environment()
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

        def conversation(opened: AgentSession) -> Conversation:
            return Conversation(self._transport, self._queue(opened.session_id), opened.session_id, own)

        def undo(opened: AgentSession) -> None:
            if id is None:  # others may have opened a saved conversation
                conversation(opened).close()

        try:
            return conversation(self._transport.create("/api/v3/agent-sessions", AgentSession, json=body, undo=undo))
        except BaseException:
            if own is not None:
                at_end(lambda: self._close_environment(own))
            raise

    def me(self) -> OwnAccount:
        """Returns the user, the token and the workspaces that it opens."""
        return self._transport.json("GET", "/api/v3/me", OwnAccount)

    def usage(self, **filters: Any) -> WorkspaceUsage:
        """
        Returns the disk space that the workspace uses, and a page of the tokens of models. Days are chosen with `to="2026-06-30"`
        and, because `from` is a word of Python, `**{"from": "2026-06-01"}`.
        """
        return self._transport.json("GET", "/api/v3/usage", WorkspaceUsage, query=filters)

    def model_usage(self, first: str | None = None, last: str | None = None) -> Iterator[ModelUsage]:
        """Yields the tokens of models by day, member and model, for the UTC days from `first` to `last`: 31 days until today without them."""
        after: str | None = None
        while True:
            days = _given(**{"from": first, "to": last, "after": after})
            models = (self.usage(**days, limit=100)).models
            for sum in models.items:
                yield sum
            after = models.next_cursor
            if after is None:
                return

    def request(
        self,
        method: str,
        path: str,
        type: type[T],
        *,
        json: Any = None,
        query: Mapping[str, str | int | float | bool | None] | None = None,
    ) -> T:
        """Sends any other request, and returns the JSON of its response as a value of `type`, such as one of `models`."""
        return self._transport.json(method, path, type, json=json, query=query)

    def close(self) -> None:
        """Closes the connections. Sessions stay open."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _open(self, type: type[OpenedSession], notebook_id: str, members: Mapping[str, Any]) -> OpenedSession:
        environment = self._new_environment()
        session = type(self._transport, self._queue(notebook_id), notebook_id, environment)
        body = {"notebookId": notebook_id, "environmentId": environment, **members}

        def undo(_: NotebookSession) -> None:
            Session._close(session)

        try:
            self._transport.create("/api/v3/notebook-sessions", NotebookSession, json=body, undo=undo)
        except BaseException:
            at_end(lambda: self._close_environment(environment))
            raise
        try:
            session._until_ready()
        except BaseException:
            at_end(lambda: Session._close(session))
            raise
        return session

    def _new_environment(self) -> str:
        def undo(created: Environment) -> None:
            self._close_environment(created.environment_id)

        created = self._transport.create("/api/v3/execution-environments", Environment, json={}, undo=undo)
        return created.environment_id

    def _close_environment(self, id: str) -> None:
        _closed(self._transport, _environment_path(id))

    def _queue(self, session_id: str) -> Queue:
        return self._queues.setdefault(session_id, Queue())
