"""
The parts of code mode that marimo 0.25 lacks: the options of the notebook's app, and `ctx.result`, which has the
effects of one `async with cm.get_context()` block.
"""

import dataclasses

import msgspec
from marimo._ast.app_config import _AppConfig
from marimo._code_mode._context import AsyncCodeModeContext
from marimo._code_mode._plan import _MoveOp
from marimo._messaging.context import HTTP_REQUEST_CTX

from frames import LIMITS, find_excess
from kernel.kernel_state import STATE

APP_OPTIONS = {field.name for field in dataclasses.fields(_AppConfig)}
MAX_APP_OPTIONS_BYTES = 64 * 1024  # the server saves no more
# marimo sends the changes of a block in one frame, which has up to twice as many values as the changes, and code that
# marimo has formatted.
BLOCK_LIMITS = LIMITS._replace(bytes=LIMITS.bytes // 2, values=LIMITS.values // 4)


class BlockResult(dict):
    """revision, changed, deleted, run, outputs, console and errors of a block, as members and as
    attributes. The values are plain JSON.
    """

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
    AsyncCodeModeContext.app_options = property(get_app_options)
    AsyncCodeModeContext.result = None  # for a context that was not entered, this is the result of the block that ended last


def set_app_options(self, **options):
    """Queues options of the notebook's app, as in ctx.set_app_options(width="full"). Raises ValueError for an option that marimo
    does not know, and for more than 64 KiB of options."""
    self._require_entered()
    for name, value in options.items():
        if name not in APP_OPTIONS:
            raise ValueError(f"There is no app option {name!r}. There are: {', '.join(sorted(APP_OPTIONS))}.")
        try:
            msgspec.convert({name: value}, _AppConfig)
        except msgspec.ValidationError as error:
            raise ValueError(f"{value!r} is not a value of the app option {name!r}: {error}") from None
    together = {**get_app_options(self), **self._app_options, **options}
    size = len(msgspec.json.encode({"options": together}))
    if size > MAX_APP_OPTIONS_BYTES:
        raise ValueError(f"The options would have {size:,} bytes as JSON, and the limit is {MAX_APP_OPTIONS_BYTES:,}.")
    self._app_options.update(options)


def get_app_options(self) -> dict:
    """Returns the options of the notebook's app that are set, as they were saved last."""
    return dict(_meta().get("app_options", {}))


def _meta() -> dict:
    """Returns the metadata that the server sent with the command."""
    request = HTTP_REQUEST_CTX.get(None)
    return request.meta if request else {}


def _enter(enter):
    async def __aenter__(self):
        self.result = None
        self._app_options = {}
        return await enter(self)

    return __aenter__


def _leave(leave):
    async def __aexit__(self, exc_type, *exc_info):
        if exc_type is None and (excess := _find_excess(self._ops)):
            refusal = ValueError(f"The changes of this block are too large, and none was made: {excess}.")
            await leave(self, ValueError, refusal, None)  # this error makes marimo discard the edits
            raise refusal
        asked, moved = set(self._cells_to_run), [op.cell_id for op in self._ops if isinstance(op, _MoveOp)]
        known = {i: _plain(errors) for i, errors in self._kernel.errors.items() if i not in asked}
        if asked & self._kernel.errors.keys():  # the server knows these errors already
            STATE.outbox.say(op="bridge-asked", cells=sorted(asked))
        stream, seen = self._kernel.stream, []
        write, finished = stream.write, False

        def watch(data):
            seen.append(bytes(data))
            write(data)

        stream.write = watch
        try:
            answer = await leave(self, exc_type, *exc_info)
            finished = exc_type is None
            return answer
        finally:  # also when a cell of the block has failed, because the edits are committed by then
            try:
                stream.flush_console()
            finally:
                del stream.write
            result = fold(seen, known, moved)
            if finished or result["committed"]:
                _apply_app_options(self._kernel, self._app_options)
            del result["committed"]
            result["revision"] = _meta().get("revision", 0) + self._document.version
            self.result = AsyncCodeModeContext.result = result

    return __aexit__


def _find_excess(ops) -> str | None:
    """Returns which limit the changes of a block exceed; None when they can be sent to the server."""
    try:
        return find_excess(msgspec.json.encode(ops, enc_hook=str), BLOCK_LIMITS)
    except UnicodeEncodeError:  # text that UTF-8 cannot encode: marimo reports the error
        return None


def _apply_app_options(kernel, options):
    if not options:
        return
    for name, value in options.items():
        setattr(kernel.app_metadata.app_config, name, value)
    meta = _meta()
    meta["revision"] = meta.get("revision", 0) + 1
    meta["app_options"] = {**meta.get("app_options", {}), **options}
    STATE.outbox.say(op="bridge-app-options", options=options)


def fold(frames, known, moved) -> BlockResult:
    """
    Returns marimo's reports during a block as one result. `known`: earlier errors of cells. marimo repeats them with
    every change of the graph.
    """
    result = BlockResult(revision=0, changed=[], deleted=[], run=[], outputs={}, console={}, errors=[], committed=False)
    for message in map(msgspec.json.decode, frames):
        if message["op"] == "notebook-document-transaction":
            result["committed"] = True
            for change in message["transaction"]["changes"]:
                _fold_change(result, change)
            result["changed"] += [i for i in dict.fromkeys(moved) if i not in result["changed"]]
        elif message["op"] == "cell-op" and message["cell_id"] != "__scratch__":
            _fold_cell(result, message, known)
    return result


def _fold_change(result, change):
    if change["type"] == "delete-cell":
        result["deleted"].append(change["cellId"])
    elif change.get("cellId") and change["cellId"] not in result["changed"]:
        result["changed"].append(change["cellId"])


def _fold_cell(result, message, known):
    cell_id, output, console = message["cell_id"], message["output"], message["console"]
    if message["status"] == "running":
        result["run"].append(cell_id)
        result["console"][cell_id] = []
    if output and output["channel"] == "marimo-error":
        if output["data"] != known.get(cell_id):
            errors = (error for error in output["data"] if error["type"] != "ancestor-stopped")  # such cells did not run on purpose
            result["errors"] += [dict(cell_id=cell_id, **error) for error in errors]
    elif output and output["data"] != "":
        result["outputs"][cell_id] = output
    for line in [console] if isinstance(console, dict) else console or []:
        result["console"].setdefault(cell_id, []).append(line)


def _plain(errors) -> list:
    return msgspec.json.decode(msgspec.json.encode(list(errors)))
