"""Follows a session with httpx-sse, with the default timeouts of httpx, and prints each message."""

import os
import time

import httpx
from httpx_sse import connect_sse

own = {
    "authorization": f"Bearer {os.environ['TOKEN']}",
    "service-workspace-id": os.environ["WORKSPACE"],
}
last_event_id, retry_ms = "", 0
with httpx.Client() as client:
    while True:
        try:
            params = {"lastEventId": last_event_id}
            with connect_sse(client, "GET", os.environ["STREAM_URL"], headers=own, params=params) as source:
                if source.response.status_code == 204:
                    break
                for event in source.iter_sse():
                    print(event.data, flush=True)
                    last_event_id, retry_ms = event.id, event.retry or retry_ms
        except httpx.ReadTimeout:
            raise  # the stream was silent for five seconds
        except httpx.TransportError:
            pass
        time.sleep(retry_ms / 1000)
