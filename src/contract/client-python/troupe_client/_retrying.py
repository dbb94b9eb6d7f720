"""Which requests are repeated, after which pause. The rules are those of the TypeScript client."""

import random

from ._errors import ApiError, ConnectionFailed, TroupeError

RETRIES = 4
# Longer pauses than this are left to the caller.
_MAX_RETRY_AFTER_S = 60
_FIRST_PAUSE_S = 0.1


def is_transient(error: TroupeError) -> bool:
    """Returns whether another attempt may succeed."""
    if isinstance(error, ApiError):
        return error.status >= 500 or error.status in (408, 429) or error.code == "idempotency_in_progress"
    return isinstance(error, ConnectionFailed)


def pause_after(error: TroupeError, repeated: int) -> float | None:
    """
    Returns how many seconds to wait before the next attempt, None when the caller should decide. The pauses begin with 0.1
    seconds and double, but are never shorter than the server's `Retry-After`. They are random, so that the clients of a
    restarted server do not return at once.
    """
    retry_after = (error.retry_after or 0) if isinstance(error, ApiError) else 0
    if not is_transient(error) or retry_after > _MAX_RETRY_AFTER_S:
        return None
    doubled: float = _FIRST_PAUSE_S * 2**repeated
    return max(float(retry_after), doubled * random.uniform(0.75, 1.25))
