"""Uses the tools that edit cells, and those of files, datasources and large outputs, and prints what they return as JSON."""

import asyncio
import base64
import json
import os
from typing import Any

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

HEADERS = {"Authorization": f"Bearer {os.environ['TOKEN']}", "Service-Workspace-Id": os.environ["WORKSPACE"]}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PIECE = 15 * 1024
LARGE = (
    "import os\n"
    "class Large:\n"
    "    def _mime_(self): return 'text/html', '<b>large</b>' + ' ' * 2_000_000\n"
    "class Picture:\n"
    "    def _repr_png_(self): return b'\\x89PNG\\r\\n\\x1a\\n' + b'x' * 1_000_000\n"
)


async def edits(client: Client) -> dict[str, Any]:
    cells = [{"cellId": "a", "code": "a = 1"}, {"cellId": "b", "code": "b = a + 1"}, {"cellId": "c", "code": "c = 1"}]
    opened = await client.call_tool("open_notebook", {"cells": cells})
    notebook = {"notebookId": opened.structured_content["notebookId"]}

    async def edit(*changes: dict[str, Any], **more: Any) -> Any:
        return (await client.call_tool("edit_cells", {**notebook, "edits": list(changes), **more})).structured_content

    async def known(cell_id: str) -> dict[str, Any]:
        return {"cellId": cell_id, "version": await version_of(client, notebook, cell_id)}

    created = await edit({"type": "create", "code": "total = a + 41\ntotal", "name": "total", "after": "a"})
    replaced = await edit({"type": "replace", **await known("a"), "code": "a = 2"})
    both = [{"type": "delete", **await known("c")}, {"type": "move", "cellId": "a", "after": "b"}]
    moved = await edit(*both, run=False)
    nowhere = {"type": "replace", "cellId": "nowhere", "version": 1, "code": "1"}
    refused = await edit({"type": "delete", **await known("a")}, nowhere)
    failing = await edit({"type": "create", "code": "1 / 0", "name": "failing"})
    setup = await edit({"type": "create", "code": "import math", "name": "setup"}, run=False)
    looping = await edit({"type": "create", "code": "print('begun')\nwhile True: pass"}, timeoutS=1)
    read = (await client.call_tool("read_notebook", notebook)).structured_content
    await client.call_tool("cancel_run", {"runId": looping["runId"]})
    total = created["cells"][0]["cellId"]
    return {
        "created": [[cell["name"], cell["status"]] for cell in created["cells"]],
        "replaced": [[cell["cellId"], cell["code"], cell["status"]] for cell in replaced["cells"]],
        "printed": [cell["result"] for cell in created["cells"]],
        "moved": moved["success"],
        "refused": [refused["success"], refused["status"], refused["error"]["code"]],
        "failing": [failing["success"], [cell["name"] for cell in failing["cells"]], "ZeroDivisionError" in str(failing)],
        "setup": [cell["cellId"] for cell in setup["cells"]],
        "looping": looping["status"],
        "order": [cell["name"] or cell["cellId"] for cell in read["cells"]][:3],
        "result": [cell["result"] for cell in read["cells"] if cell["cellId"] == total],
    }


async def version_of(client: Client, notebook: dict[str, str], cell_id: str) -> int:
    """Reads a cell, and returns its version."""
    read = await client.call_tool("read_cells", {**notebook, "cellIds": [cell_id]})
    version: int = read.structured_content["cells"][0]["version"]
    assert f"version {version}" in read.content[0].text
    return version


async def colleagues(client: Client) -> dict[str, Any]:
    """Edits cells that a colleague changes meanwhile."""
    long = f"c = '{'x' * 1000}'"
    cells = [{"cellId": "a", "code": "a = 1"}, {"cellId": "b", "code": "b = 1"}, {"cellId": "c", "code": long}]
    opened = await client.call_tool("open_notebook", {"cells": cells})
    notebook = {"notebookId": opened.structured_content["notebookId"]}
    versions = {name: await version_of(client, notebook, name) for name in ("a", "b")}
    changes = {"changes": [{"type": "set-code", "cellId": "a", "code": "a = 'theirs'"}]}
    path = f"/api/v3/notebook-sessions/{notebook['notebookId']}/changes"
    async with httpx2.AsyncClient(headers=HEADERS) as colleague:
        (await colleague.post(os.environ["BASE_URL"] + path, json=changes)).raise_for_status()

    async def edit(*edits: dict[str, Any]) -> Any:
        return await client.call_tool("edit_cells", {**notebook, "edits": list(edits), "run": False})

    async def listed() -> list[dict[str, Any]]:
        return (await client.call_tool("read_notebook", notebook)).structured_content["cells"]

    async def codes() -> list[str]:
        return [cell["code"] for cell in (await listed())[:2]]

    mine = [{"type": "replace", "cellId": name, "version": versions[name], "code": f"{name} = 'mine'"} for name in ("b", "a")]
    refused = await edit(*mine)
    deleting = await edit({"type": "delete", "cellId": "a", "version": versions["a"]})
    kept = await codes()
    unread = await edit({"type": "replace", "cellId": "a", "code": "a = 'mine'"})
    present = await version_of(client, notebook, "a")
    again = await edit({**mine[1], "version": present})
    following = await edit({**mine[1], "version": again.structured_content["cells"][0]["version"], "code": "a = 'mine too'"})
    return {
        "refused": [one.structured_content[name] for one in (refused, deleting) for name in ("success", "status")],
        "advice": "Call read_cells" in refused.content[0].text and "Nothing was changed" in refused.content[0].text,
        "kept": kept,
        "versions": [[cell["cellId"], "version" in cell] for cell in await listed()],
        "unread": [unread.is_error, "version" in unread.content[0].text],
        "again": [again.structured_content["success"], following.structured_content["success"], await codes()],
    }


async def files(client: Client) -> dict[str, Any]:
    text = "é" * PIECE + "end"
    written = await client.call_tool("write_file", {"path": "mcp/long.txt", "content": text})
    await client.call_tool("write_file", {"path": "mcp/dot.png", "content": PIXEL, "encoding": "base64"})
    await client.call_tool("write_file", {"path": "mcp/odd.bin", "content": "/w==", "encoding": "base64"})
    pieces: list[str] = []
    offset: int | None = 0
    while offset is not None:
        piece = (await client.call_tool("read_file", {"path": "mcp/long.txt", "offset": offset})).structured_content
        pieces.append(piece["text"])
        offset = piece["nextOffset"]
    picture = await client.call_tool("read_file", {"path": "mcp/dot.png"})
    odd = await client.call_tool("read_file", {"path": "mcp/odd.bin"})
    missing = await client.call_tool("read_file", {"path": "mcp/none.txt"})
    outside = await client.call_tool("write_file", {"path": "../outside.txt", "content": "no"})
    token = await client.call_tool("read_file", {"path": "../me"})
    listed = (await client.call_tool("list_files", {"prefix": "mcp/"})).structured_content
    return {
        "written": written.structured_content["bytes"] == len(text.encode()),
        "pieces": [len(pieces), "".join(pieces) == text],
        "picture": [[one.type, getattr(one, "data", None) == PIXEL] for one in picture.content],
        "odd": odd.structured_content["bytes"],
        "refused": [missing.is_error, outside.is_error, token.is_error],
        "listed": [file["path"] for file in listed["files"]],
    }


async def datasources(client: Client) -> dict[str, Any]:
    listed = (await client.call_tool("list_datasources", {})).structured_content
    described = (await client.call_tool("describe_datasource", {"slug": "sales"})).structured_content
    query = {"slug": "sales", "sql": "select region, sum(amount) as total from sales group by region order by region"}
    rows = (await client.call_tool("query_datasource", query)).structured_content
    first = (await client.call_tool("query_datasource", {**query, "maxRows": 1})).structured_content
    writing = await client.call_tool("query_datasource", {"slug": "sales", "sql": "delete from sales"})
    missing = await client.call_tool("query_datasource", {**query, "slug": "none"})
    return {
        "listed": [[one["slug"], one["kind"]] for one in listed["datasources"]],
        "described": described["tables"],
        "rows": [[column["name"] for column in rows["columns"]], *rows["rows"]],
        "first": [first["rows"], first["isCut"]],
        "refused": [writing.is_error, missing.is_error],
    }


async def large_outputs(client: Client) -> dict[str, Any]:
    cells = [{"cellId": "classes", "code": LARGE}, {"cellId": "page", "code": "Large()"}, {"cellId": "figure", "code": "Picture()"}]
    opened = await client.call_tool("open_notebook", {"cells": cells})
    notebook = {"notebookId": opened.structured_content["notebookId"]}
    ran = await client.call_tool("run_cells", {**notebook, "cellIds": ["page", "figure"]})
    links = [one for one in ran.content if one.type == "resource_link"]
    contents = [(await client.read_resource(str(link.uri))).contents[0] for link in links]
    output = await client.call_tool("read_output", {**notebook, "cellId": "figure"})
    page = await client.call_tool("read_output", {**notebook, "cellId": "page"})
    slow = "import time\nprint('so far', flush=True)\nwhile True: time.sleep(0.01)"
    late = await client.call_tool("run_python", {**notebook, "code": slow, "timeoutS": 1})
    return {
        "links": sorted([link.mime_type, len(base64.b64decode(content.blob))] for link, content in zip(links, contents)),
        "output": [one.type for one in output.content],
        "page": "large" in page.content[0].text,
        "late": [late.structured_content[name] for name in ("status", "stdout", "success")],
        "lateErrors": [error["type"] for error in late.structured_content["errors"]],
        "lateText": "so far" in late.content[0].text,
    }


async def main() -> None:
    async with httpx2.AsyncClient(headers=HEADERS, timeout=60) as http:
        transport = streamable_http_client(os.environ["BASE_URL"] + "/mcp", http_client=http)
        async with Client(transport, mode="auto") as client:
            parts = {
                **{"edits": edits, "colleagues": colleagues, "files": files},
                **{"datasources": datasources, "large": large_outputs},
            }
            print(json.dumps({name: await part(client) for name, part in parts.items()}))


asyncio.run(main())
