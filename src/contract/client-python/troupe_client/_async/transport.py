"""Sends requests, repeats them, and follows event streams across connections."""

import re
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from typing import Any, TypeVar

import httpx2
import msgspec

from .._decoding import decode, decode_event
from .._errors import ApiError, CodeInterrupted, ConnectionFailed, TroupeError
from .._platform import async_at_end, async_sleep
from .._retrying import is_transient, pause_after
from .._version import __version__

T = TypeVar("T")
Query = Mapping[str, str | int | float | bool | None]

# The server sends a heartbeat every 2.5 seconds.
_SILENCE_S = 16.0
_LEAST_SILENCE_S = 4.0
_CONNECT_S = 10.0
_GIVE_UP_AFTER_S = 60.0
_MAX_PAUSE_S = 5.0
# Requests that wake a kernel wait up to 30 seconds for it. While code runs, the server sends white space.
TIMEOUT_S = 60.0
# The codes of refusals to delete or close something that is not there any more.
GONE = ("not_found", "session_closed", "environment_closed")


class AsyncTransport:
    """The connections to one server, for one caller in one workspace."""

    def __init__(
        self,
        base_url: str,
        access_token: str | None,
        workspace_id: str | None,
        retries: int,
        timeout: float,
        http: httpx2.AsyncClient | None,
    ) -> None:
        """
        `timeout` is the number of seconds for which the server may be silent. Raises `ValueError` for a URL or an access token
        that cannot be one.
        """
        if not re.fullmatch(r"https?://[^\s/?#@]+(/[^\s?#]*)?", base_url):
            raise ValueError("The base URL must be one such as http://127.0.0.1:8787: without user, query or fragment.")
        token = (access_token or "").strip()
        if not re.fullmatch(r"[\x21-\x7e]*", token):
            raise ValueError("The access token has characters that no token has, such as a space or a line break.")
        self.base_url = base_url.rstrip("/")
        self._retries = retries
        self._timeout = timeout
        self._headers = {"user-agent": f"troupe-client-python/{__version__}"}
        if token:
            self._headers["authorization"] = f"Bearer {token}"
        if workspace_id:
            self._headers["service-workspace-id"] = workspace_id
        self._owns_http = http is None
        # Streams and waiting requests have a connection each, so their number has no limit.
        self._http = http or httpx2.AsyncClient(limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20))

    async def aclose(self) -> None:
        """Closes the connections."""
        if self._owns_http:
            await self._http.aclose()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        json: Any = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        wait: int = 0,
        repeatable: bool = True,
        key: str | None = None,
    ) -> httpx2.Response:
        """
        Returns the response with its body. Repeats the request after a lost connection, 408, 429, 5xx and
        `idempotency_in_progress`; every POST has an `Idempotency-Key`, so that it takes effect once. When the repetition of a
        PATCH or PUT is refused, for which the first attempt may be the reason, the failure of that attempt is raised. A request
        that is not `repeatable` is repeated only if it cannot have taken effect. `wait` is the number of seconds for which the server
        may hold the response back. `key` is the `Idempotency-Key`, if another request is to get the same response. Raises `ApiError` or `ConnectionFailed`.
        """
        given = {**self._headers, **(headers or {})}
        if json is not None:
            content = msgspec.json.encode(json)
            given["content-type"] = "application/json"
        if method == "POST":
            given["idempotency-key"] = key or secrets.token_hex(16)
        unclear: TroupeError | None = None  # the first failure of an attempt that may have taken effect
        repeated = 0
        since = time.monotonic()
        while True:
            try:
                return await self._attempt(method, path, query, given, content, wait)
            except (ApiError, ConnectionFailed) as error:
                if unclear is not None and isinstance(error, ApiError):
                    if method == "DELETE" and error.code in GONE:
                        return httpx2.Response(204)  # the earlier attempt has deleted it
                    if method in ("PATCH", "PUT") and not is_transient(error):
                        raise unclear from error  # the earlier attempt may be the reason
                cut = isinstance(error, ConnectionFailed) and not error.refused
                # A server that responds with 5xx may have died after it has stored the change.
                if cut or isinstance(error, ApiError) and error.status >= 500:
                    unclear = unclear or error
                is_final = not repeatable and unclear is not None
                pause = pause_after(error, repeated)
                is_late = time.monotonic() - since >= self._timeout + wait
                if is_final or is_late or pause is None or repeated >= self._retries:
                    raise
                if cut:
                    # A connection that lives shorter than the server waits would never bring a response.
                    wait = 0
            repeated += 1
            await async_sleep(pause)

    async def json(self, method: str, path: str, type: type[T], **request: Any) -> T:
        """Returns the decoded body of the response to a `request`."""
        response = await self.request(method, path, **request)
        try:
            return decode(response.content, type)
        except msgspec.MsgspecError as error:
            raise _unexpected(response, self.base_url + path, f"cannot be read ({error})") from error

    async def create(self, path: str, type: type[T], *, json: Any, undo: Callable[[T], Coroutine[Any, Any, object]]) -> T:
        """
        Posts a request that opens something, and returns its decoded response. When the caller leaves meanwhile, because it is
        cancelled or interrupted by a signal, the response is asked for again and undone.
        """
        key = secrets.token_hex(16)
        try:
            return await self.json("POST", path, type, json=json, key=key)
        except TroupeError:
            raise
        except BaseException:

            async def undone() -> None:
                await undo(await self.json("POST", path, type, json=json, key=key))

            await async_at_end(undone)
            raise

    async def interruptible(
        self, path: str, type: type[T], *, json: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> T:
        """
        Posts a request whose work the server interrupts when the connection ends, so that it is not repeated. Raises
        `CodeInterrupted` in that case.
        """
        try:
            return await self.json("POST", path, type, json=json, headers=headers, repeatable=False)
        except ConnectionFailed as error:
            if error.refused:
                raise
            raise CodeInterrupted(error.url, error.__cause__) from error

    def address(self, url: str) -> str:
        """Returns an address for browsers. The server names a path below its own address, or a whole URL."""
        return self.base_url + url if url.startswith("/") else url

    async def follow(self, path: str, union: Any, last_event_id: str = "") -> AsyncGenerator[Any, None]:
        """
        Yields the events of a stream, each once and in order, across connections: after `last_event_id`, or from the
        current state. A snapshot after the first means that the server does not have all that was missed: the current state
        follows it, until `session.replayed`. The end of the session ends the stream.
        """
        lost_at: float | None = None
        pause = 0.0
        while True:
            least_pause = 0.0
            failure: TroupeError = ConnectionFailed(self.base_url + path, "the stream ended")
            is_continuing = False  # whether events that are not marked as missed report a state that the caller has
            headers = {**self._headers, "last-event-id": last_event_id} if last_event_id else self._headers
            connect = min(_CONNECT_S, self._timeout)
            timeout = httpx2.Timeout(connect, read=max(_LEAST_SILENCE_S, min(_SILENCE_S, self._timeout)))
            try:
                async with self._http.sse(
                    self.base_url + path, headers=headers, timeout=timeout, max_event_size=None
                ) as source:
                    response = source.response
                    if response.status_code == 204:
                        return
                    if response.status_code != 200:
                        await response.aread()
                        raise ApiError(response.status_code, response.headers, response.content)
                    if not response.headers.get("content-type", "").startswith("text/event-stream"):
                        await response.aread()
                        raise _unexpected(response, self.base_url + path, "is not an event stream")
                    lost_at = None
                    async for frame in source:
                        if frame.data == "":
                            continue
                        last_event_id = frame.id
                        pause = 0.0
                        event = decode_event(frame.data, union)
                        if event is None:
                            continue
                        event.id = frame.id
                        if event.type.endswith(".snapshot") and event.resumed is True:
                            is_continuing = True
                        if is_continuing and getattr(event, "missed", False) is not True:
                            if event.type.endswith(".replayed"):
                                is_continuing = False
                            continue
                        if event.type.endswith(".resync-required"):
                            break
                        yield event
                        if event.type == "session.closed":
                            return
            except httpx2.TransportError as error:
                failure = ConnectionFailed(self.base_url + path, error)
            except ApiError as error:
                if not is_transient(error):
                    raise
                failure = error
                least_pause = float(error.retry_after or 0)
            now = time.monotonic()
            lost_at = now if lost_at is None else lost_at
            if now + least_pause - lost_at > min(_GIVE_UP_AFTER_S, self._timeout):
                raise failure
            pause = min(max(pause * 2, 0.05), _MAX_PAUSE_S)
            await async_sleep(max(pause, least_pause))

    async def _attempt(
        self, method: str, path: str, query: Query | None, headers: Mapping[str, str], content: bytes | None, wait: int
    ) -> httpx2.Response:
        params = _query({**(query or {}), "wait": wait or None}) if query or wait else None
        timeout = httpx2.Timeout(self._timeout + wait, connect=min(_CONNECT_S, self._timeout))
        url = self.base_url + path
        try:
            response = await self._http.request(
                method, url, params=params, headers=headers, content=content, timeout=timeout
            )
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            raise ConnectionFailed(url, error, refused=True) from error
        except httpx2.TransportError as error:
            raise ConnectionFailed(url, error) from error
        if response.is_success:
            return response
        if 300 <= response.status_code < 400:
            where = response.headers.get("location", "another address")
            raise _unexpected(response, url, f"redirects to {where}, which is not followed")
        raise ApiError(response.status_code, response.headers, response.content)


def _unexpected(response: httpx2.Response, url: str, problem: str) -> ApiError:
    """Returns the error for a response that no Troupe server sends. `problem` completes the sentence "The response …"."""
    detail = f"The response of {url} {problem}. Is the base URL that of a Troupe server?"
    return ApiError(response.status_code, response.headers, msgspec.json.encode({"detail": detail}))


def _query(query: Query) -> dict[str, str]:
    return {name: _query_text(value) for name, value in query.items() if value is not None}


def _query_text(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(str(one) for one in value)
    return str(value).lower() if isinstance(value, bool) else str(value)
