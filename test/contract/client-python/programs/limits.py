"""Large outputs in events, calls that are interrupted, and sessions that end by themselves. Prints the outcome."""

import json
import os
import threading
from typing import Any

import httpx2

from troupe_client import ApiError, Troupe

LARGE = "import marimo as mo\nmo.Html('<p>' + 'x' * 3_000_000)"
ENDLESS = "import time\nprint('begun', flush=True)\nwhile True: time.sleep(0.01)"


def large_output(troupe: Troupe) -> dict[str, object]:
    with troupe.open(troupe.notebooks.create(cells={"large": LARGE})) as session:
        run = session.start()
        outputs = [event.data.output for event in run if event.type == "cell-op" and event.data.output]
        bytes = [len(session.asset(output.asset_id)) for output in outputs if output.asset_id]
        lengths = [len(data) for data in default_stream(session.id)]
        try:
            session.asset("asset_none")
        except ApiError as error:
            missing = error.code
        return {"bytes": bytes, "small": max(lengths) < 1024 * 1024, "missing": missing}


def default_stream(session_id: str) -> list[str]:
    """Returns the current state of a session, read with httpx2 and its own limits."""
    access = {"Authorization": f"Bearer {os.environ['SERVICE_ACCESS_TOKEN']}"}
    headers = {**access, "Service-Workspace-Id": os.environ["SERVICE_WORKSPACE_ID"]}
    url = f"{os.environ['SERVICE_BASE_URL']}/api/v3/notebook-sessions/{session_id}/events"
    found: list[str] = []
    with httpx2.Client(headers=headers) as http, http.sse(url) as source:
        for frame in source:
            if frame.data:
                found.append(frame.data)
                if json.loads(frame.data)["type"] == "session.replayed":
                    break
    return found


def limits(troupe: Troupe) -> dict[str, object]:
    notebook = troupe.notebooks.create(cells={"endless": ENDLESS})
    with troupe.open(notebook) as session:
        late_run = session.run("endless", timeout=1)
        late_code = session.code(ENDLESS, timeout=1)
        return {
            "run": [late_run.status, late_run.error and late_run.error.code],
            "code": [late_code.success, late_code.errors[-1].type, late_code.stdout],
        }


def interrupts(troupe: Troupe) -> dict[str, object]:
    with troupe.open(troupe.notebooks.create(cells={"endless": ENDLESS})) as session:
        run = session.start("endless")
        for event in run:
            if event.type == "console-output":
                session.interrupt()
        outcomes: list[Any] = []
        call = threading.Thread(target=lambda: outcomes.append(session.code(ENDLESS)))
        with threading_events(session) as begun:
            call.start()
            assert begun.wait(60)
        session.interrupt()
        call.join()
        session.interrupt()
        return {"run": run.result().status, "code": [outcomes[0].success, outcomes[0].stdout]}


class threading_events:
    """Sets an event when code outside of cells has printed."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._begun = threading.Event()

    def _follow(self, live: threading.Event) -> None:
        for event in self._session.events():
            if event.type == "session.replayed":
                live.set()
            if event.type == "console-output" and event.data.cell_id == "__scratch__":
                self._begun.set()
                return

    def __enter__(self) -> threading.Event:
        live = threading.Event()
        self._thread = threading.Thread(target=self._follow, args=[live])
        self._thread.start()
        assert live.wait(60)
        return self._begun

    def __exit__(self, *failure: object) -> None:
        self._thread.join()


def lifetimes(troupe: Troupe) -> dict[str, object]:
    notebook = troupe.notebooks.create(cells={"a": "1"})
    kept = troupe.open(notebook, ttl=86_400, idle_timeout=3600)
    record = kept.record()
    kept.close()
    ended = [event.type for event in troupe.open(notebook, ttl=1).events()][-1]
    with troupe.sandbox(ttl=3600) as box:
        sandboxed = box.record().ttl_s
    return {"ttl": record.ttl_s, "idle": record.idle_timeout_s, "ended": ended, "sandbox": sandboxed}


with Troupe() as troupe:
    print(
        json.dumps(
            {
                "large": large_output(troupe),
                "limits": limits(troupe),
                "interrupts": interrupts(troupe),
                "lifetimes": lifetimes(troupe),
            }
        )
    )
