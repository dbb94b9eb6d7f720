"""The exceptions that calls raise."""

from collections.abc import Mapping
from typing import Any

import msgspec


class TroupeError(Exception):
    """The base of all exceptions that this package raises by itself. They can be copied, and pickled for other processes."""

    def __reduce__(self) -> tuple[Any, ...]:
        # By default, pickle makes an exception again from its message alone.
        return _made_again, (type(self), self.args), self.__dict__


class RequestViolation(msgspec.Struct):
    """One mistake in a request: its place (a JSON pointer into the body, or `query/<name>`) and what is wrong."""

    path: str = ""
    message: str = ""


class _Problem(msgspec.Struct):
    code: str = "unexpected_response"
    detail: str = ""
    request_id: str | None = msgspec.field(name="requestId", default=None)
    errors: list[RequestViolation] = []


class ApiError(TroupeError):
    """A response that reports a failure. `code` is stable; it is `unexpected_response` when a proxy sent the response."""

    def __init__(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        try:
            problem = msgspec.json.decode(content, type=_Problem)
        except msgspec.MsgspecError:
            problem = _Problem()
        self.status = status
        self.code = problem.code
        self.detail = problem.detail or f"The server responded with {status}."
        self.request_id = problem.request_id or headers.get("x-request-id")
        self.errors = problem.errors
        """The mistakes in the request, each with its place."""
        self.retry_after = _seconds(headers.get("retry-after"))
        """How many seconds to wait before another attempt, if the server says so."""
        self.content = content
        """The body of the response."""
        super().__init__(f"{self.detail} ({self.status} {self.code})")

    def body(self) -> Any:
        """Returns the decoded body: the problem document with its additional members. None when it is not JSON."""
        try:
            return msgspec.json.decode(self.content)
        except msgspec.MsgspecError:
            return None


class ConnectionFailed(TroupeError, ConnectionError):
    """There was no response: the server could not be reached, or the connection ended before the response did."""

    def __init__(self, url: str, cause: object, *, refused: bool = False) -> None:
        self.url = url
        self.refused = refused
        """Whether the request cannot have reached the server."""
        super().__init__(f"No response from {url}: {str(cause) or type(cause).__name__}.")


class CodeInterrupted(ConnectionFailed):
    """
    The connection ended before a code call, or the call of a function, did. The server interrupts code whose caller has left,
    so part of it may have run, and the call is not repeated.
    """

    def __init__(self, url: str, cause: object) -> None:
        super().__init__(url, cause)
        self.args = (f"{self.args[0]} The code was interrupted, and is not run again.",)


class SessionFailed(TroupeError):
    """A session that should become ready has failed or was closed. `code` says why."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(f"{message} ({code})")


def _seconds(header: str | None) -> int | None:
    return int(header) if header is not None and header.isascii() and header.isdigit() and len(header) < 10 else None


def _made_again(type: type[TroupeError], args: tuple[Any, ...]) -> TroupeError:
    error = type.__new__(type)
    error.args = args
    return error
