"""Cancels long calls, watches them, and waits longer than they may take, in the era that the
argument names. Prints what happened as JSON.
"""

import asyncio
import json
import os
import sys
import time

import httpx2
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

HEADERS = {"Authorization": f"Bearer {os.environ['TOKEN']}", "Service-Workspace-Id": os.environ["WORKSPACE"]}
PICTURE = (
    "import base64\n"
    "class Picture:\n"
    "    def _repr_png_(self):\n"
    "        return base64.b64decode('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==')\n"
    "Picture()"
)


async def cancel(client: Client, notebook: dict[str, str]) -> float:
    """Returns how many seconds after a cancelled call the kernel has run another one."""
    running = asyncio.Event()

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        if message == "begun":
            running.set()

    code = "import time\nprint('begun', flush=True)\ntime.sleep(100)"
    call = asyncio.create_task(
        client.call_tool("run_python", {**notebook, "code": code, "timeoutS": 200}, progress_callback=heard)
    )
    await asyncio.wait_for(running.wait(), 30)
    began = time.monotonic()
    call.cancel()
    await asyncio.wait([call])
    after = await client.call_tool("run_python", {**notebook, "code": "'free'"})
    assert after.structured_content["result"] == "'free'", after
    return time.monotonic() - began


async def use(client: Client) -> dict[str, object]:
    notebook = {"notebookId": (await client.call_tool("open_notebook", {})).structured_content["notebookId"]}
    messages: list[str] = []

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        messages.append(message or "")

    code = "import time\nfor i in range(4):\n    print('step', i, flush=True)\n    time.sleep(0.3)"
    await client.call_tool("run_python", {**notebook, "code": code}, progress_callback=heard)
    freed = [await cancel(client, notebook) for _ in range(3)]
    late = await client.call_tool("run_python", {**notebook, "code": "import time\ntime.sleep(100)", "timeoutS": 1})
    shown = await client.call_tool("run_python", {**notebook, "code": PICTURE})
    edits = [{"type": "create", "code": "import time\ntime.sleep(3)\n'slept'"}]
    edited = await client.call_tool("edit_cells", {**notebook, "edits": edits, "run": False})
    cell = edited.structured_content["cells"][0]["cellId"]
    begun = await client.call_tool("run_cells", {**notebook, "cellIds": [cell], "timeoutS": 1})
    run = begun.structured_content["runId"]
    ended = await client.call_tool("get_run", {"runId": run})
    together = await asyncio.gather(
        *[client.call_tool("run_python", {**notebook, "code": f"{i} * 2"}) for i in range(4)]
    )
    templates = (await client.list_resource_templates()).resource_templates
    resource = await client.read_resource(f"troupe://notebooks/{notebook['notebookId']}")
    missing = await client.call_tool("run_python", {"notebookId": os.environ.get("FOREIGN", "nb_none"), "code": "1"})
    await client.call_tool("close_notebook", notebook)
    return {
        # Text of one line may come in several pieces, and progress reports the line so far.
        "steps": [line for line in dict.fromkeys(messages) if line.startswith("step ") and line[-1].isdigit()],
        "freed": freed,
        "late": late.structured_content,
        "shown": [[one.type, getattr(one, "mime_type", None)] for one in shown.content],
        "begun": begun.structured_content["status"],
        "ended": ended.structured_content["cells"][0]["result"],
        "together": [one.structured_content["result"] for one in together],
        "templates": len(templates),
        "python": resource.contents[0].text,
        "missing": [missing.is_error, missing.content[0].text],
    }


async def main(way: str, mode: str) -> None:
    if way == "stdio":
        command, *args = json.loads(os.environ["COMMAND"])
        access = {"BASE_URL": "SERVICE_BASE_URL", "TOKEN": "SERVICE_ACCESS_TOKEN", "WORKSPACE": "SERVICE_WORKSPACE_ID"}
        env = {name: os.environ[given] for given, name in access.items()}
        async with Client(stdio_client(StdioServerParameters(command=command, args=args, env=env)), mode=mode) as client:
            print(json.dumps(await use(client)))
        return
    async with httpx2.AsyncClient(headers=HEADERS, timeout=60) as http:
        transport = streamable_http_client(os.environ["BASE_URL"] + "/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            print(json.dumps(await use(client)))


asyncio.run(main(sys.argv[1], sys.argv[2]))
