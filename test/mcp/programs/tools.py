"""Uses the tools of a server over HTTP, in the era that the argument names, and prints what they return as JSON."""

import asyncio
import json
import os
import sys

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

HEADERS = {"Authorization": f"Bearer {os.environ['TOKEN']}", "Service-Workspace-Id": os.environ["WORKSPACE"]}


async def main(mode: str) -> None:
    async with httpx2.AsyncClient(headers=HEADERS, timeout=60) as http:
        transport = streamable_http_client(os.environ["BASE_URL"] + "/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            done = {"tools": [tool.name for tool in (await client.list_tools()).tools]}
            cells = [{"cellId": "numbers", "code": "numbers = [1, 2, 3]"}, {"cellId": "total", "code": "sum(numbers)"}]
            opened = (await client.call_tool("open_notebook", {"title": "Numbers", "cells": cells})).structured_content
            notebook = {"notebookId": opened["notebookId"]}
            done["status"] = opened["status"]
            listed = (await client.call_tool("list_notebooks", {"title": "numbers"})).structured_content
            done["listed"] = notebook["notebookId"] in [one["notebookId"] for one in listed["notebooks"]]
            await client.call_tool("run_python", {**notebook, "code": "kept = 20"})
            result = await client.call_tool("run_python", {**notebook, "code": 'print("so"); kept + 1'})
            done["python"] = result.structured_content
            done["text"] = result.content[0].text
            done["failed"] = await client.call_tool("run_python", {**notebook, "code": "1 / 0"})
            done["ran"] = (await client.call_tool("run_cells", {**notebook, "cellIds": ["total"]})).structured_content
            done["closed"] = (await client.call_tool("close_notebook", notebook)).structured_content["status"]
            # A notebook that is closed is opened by the tool that needs it.
            again = await client.call_tool("run_python", {**notebook, "code": "6 * 7"})
            done["again"] = again.structured_content["result"]
            failed = done["failed"]
            done["failed"] = {"isError": failed.is_error, **failed.structured_content}
            print(json.dumps(done))


asyncio.run(main(sys.argv[1]))
