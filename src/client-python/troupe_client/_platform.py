"""Locks, sleeps and closing of generators, for the asynchronous client (with asyncio) and for the synchronous one."""

import asyncio
import threading
import time
from contextlib import aclosing, closing

__all__ = ["AsyncLock", "Lock", "aclosing", "async_sleep", "closing", "sleep"]

AsyncLock = asyncio.Lock
Lock = threading.Lock
async_sleep = asyncio.sleep
sleep = time.sleep
