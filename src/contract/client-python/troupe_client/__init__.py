"""
The client of Troupe, a self-hosted server for notebooks, agents and data.

`Troupe` is the client, and `AsyncTroupe` the same for asyncio. `models` has the JSON shapes of the API.
"""

from . import models
from ._async.client import AsyncTroupe
from ._async.runs import AsyncRunHandle
from ._async.sessions import AsyncConversation, AsyncSandbox, AsyncSession
from ._errors import ApiError, CodeInterrupted, ConnectionFailed, RequestViolation, SessionFailed, TroupeError
from ._results import CellOutcome, CodeOutcome, Image, RunOutcome
from ._sync.client import Troupe
from ._sync.runs import RunHandle
from ._sync.sessions import Conversation, Sandbox, Session
from ._version import __version__

__all__ = [
    "ApiError",
    "AsyncConversation",
    "AsyncRunHandle",
    "AsyncSandbox",
    "AsyncSession",
    "AsyncTroupe",
    "CellOutcome",
    "CodeInterrupted",
    "CodeOutcome",
    "ConnectionFailed",
    "Conversation",
    "Image",
    "RequestViolation",
    "RunHandle",
    "RunOutcome",
    "Sandbox",
    "Session",
    "SessionFailed",
    "Troupe",
    "TroupeError",
    "__version__",
    "models",
]
