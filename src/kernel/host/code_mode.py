"""What code mode lacks in marimo 0.25: `ctx.result`, what one `async with cm.get_context()` block did, and
`ctx.set_app_options`."""

import msgspec
from marimo._code_mode._context import AsyncCodeModeContext
from marimo._messaging.context import HTTP_REQUEST_CTX

from kernel_state import STATE


class BlockResult(dict):
    """revision, changed, deleted, run, outputs, console, errors: as members and as attributes. Plain JSON."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def install():
    """Patches code mode's context in this process; once, in the zygote."""
    AsyncCodeModeContext.__aenter__ = _enter(AsyncCodeModeContext.__aenter__)
    AsyncCodeModeContext.__aexit__ = _leave(AsyncCodeModeContext.__aexit__)
    AsyncCodeModeContext.set_app_options = set_app_options


def set_app_options(self, **options):
    """Changes options of the notebook's app, as in ctx.set_app_options(width="full"). Applied at once; the server
    checks them."""
    STATE.outbox.say(op="bridge-app-options", options=options)


def _enter(enter):
    async def __aenter__(self):
        self.result = None
        return await enter(self)

    return __aenter__


def _leave(leave):
    async def __aexit__(self, *exc_info):
        stream, seen = self._kernel.stream, []
        write = stream.write

        def watch(data):
            seen.append(bytes(data))
            write(data)

        stream.write = watch
        try:
            return await leave(self, *exc_info)
        finally:  # also when a cell of the block failed: the edits are committed by then
            try:
                stream.flush_console()
            finally:
                del stream.write
            request = HTTP_REQUEST_CTX.get(None)
            revision = ((request and request.meta) or {}).get("revision", 0)
            self.result = fold(seen, revision + self._document.version)

    return __aexit__


def fold(frames, revision) -> BlockResult:
    """The notifications that marimo sent while a block was applied, as one result."""
    result = BlockResult(revision=revision, changed=[], deleted=[], run=[], outputs={}, console={}, errors=[])
    for message in map(msgspec.json.decode, frames):
        if message["op"] == "notebook-document-transaction":
            for change in message["transaction"]["changes"]:
                _fold_change(result, change)
        elif message["op"] == "cell-op" and message["cell_id"] != "__scratch__":
            _fold_cell(result, message)
    return result


def _fold_change(result, change):
    if change["type"] == "delete-cell":
        result["deleted"].append(change["cellId"])
    elif change.get("cellId") and change["cellId"] not in result["changed"]:
        result["changed"].append(change["cellId"])


def _fold_cell(result, message):
    cell_id, output, console = message["cell_id"], message["output"], message["console"]
    if message["status"] == "running":
        result["run"].append(cell_id)
        result["console"][cell_id] = []
    if output and output["channel"] == "marimo-error":
        result["errors"] += [dict(cell_id=cell_id, **error) for error in output["data"]]
    elif output:
        result["outputs"][cell_id] = output
    for line in [console] if isinstance(console, dict) else console or []:
        result["console"].setdefault(cell_id, []).append(line)
