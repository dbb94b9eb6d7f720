"""The part of a kernel's state that only pages in a browser need, as the notifications from which a new page builds it.

marimo's own server keeps it in each session. Here the kernel keeps it, so that its memory is charged to the notebook.
"""

import msgspec

# Each of these notifications replaces the previous one with the same op.
LATEST = ("variable-values", "data-source-connections", "storage-namespaces")
MAX_DATASETS = 64
MAX_MODEL_UPDATES = 32  # before the updates of a widget are merged into its first state
MAX_BYTES = 16 << 20
# The state of all widgets that is saved with the outputs of a notebook, as JSON (src/notebook/saved/saved-outputs.ts).
MAX_SAVED_BYTES = 8 << 20
# marimo's kernel takes no code or style of a widget from a page.
CODE_OF_WIDGETS = ("_esm", "_css")
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class PageState:
    """Not safe for threads by itself: the outbox calls it with its lock."""

    def __init__(self):
        self._latest = {}  # op -> notification
        self._datasets = {}  # names of the tables -> notification
        self._models = {}  # id of a widget's model -> its `open` and the updates since then
        self._bytes = 0
        self._cells = {}  # id of a widget's model -> the cell that made it
        self._dropped = {}  # id of a widget's model for which there was no room -> the bytes of its state
        self._reported = set()  # the models that are not saved, because the output of their cell says so
        self._is_saved = True  # whether the models have not changed since they were last saved

    def take(self, data, cell_id=None):
        """Keeps a notification if a page that opens later needs it. `cell_id` is the cell that runs."""
        data = bytes(data)
        op = _op_of(data)
        if op in LATEST:
            self._replace(self._latest, op, data)
        elif op == "datasets":
            self._take_datasets(data)
        elif op == "model-lifecycle":
            self._take_model(data, cell_id)
        self._make_room()

    def take_write(self, model, message, buffers):
        """Keeps a change of a widget that a page has made: marimo sends no notification of it, and a page that opens later
        would show the widget as it was before."""
        if model not in self._models:
            return
        state = {name: value for name, value in message.state.items() if name not in CODE_OF_WIDGETS}
        update = {"method": "update", "state": state, "buffer_paths": message.buffer_paths, "buffers": buffers}
        self._take_model(_encode({"op": "model-lifecycle", "model_id": model, "message": update}), None)
        self._make_room()

    def messages(self):
        """Returns the notifications for a new page, in the order in which it reads them."""
        models = [_merged(messages) for messages in self._models.values()]
        return [*self._latest.values(), *self._datasets.values(), *models]

    def take_unsaved(self):
        """Returns the state of all widgets if it has changed since the last call, as a JSON list of notifications, and
        the widgets that have become too large for it: (cell, bytes) of each. Returns None when nothing has changed."""
        if self._is_saved:
            return None
        self._is_saved = True
        saved, size, too_large = [], len(b"]"), dict(self._dropped)
        for model, messages in self._models.items():
            state = _merged(messages)
            if size + len(b",") + len(state) > MAX_SAVED_BYTES:
                too_large[model] = len(state)
                continue
            size += len(b",") + len(state)
            saved.append(state)
        new = [model for model in too_large if model not in self._reported]
        self._reported = set(too_large)
        return b"[%b]" % b",".join(saved), [(self._cells.get(model), too_large[model]) for model in new]

    def _take_datasets(self, data):
        notification = _decode(data)
        if notification.get("clear_channel") is not None:
            for data_of in self._datasets.values():
                self._bytes -= len(data_of)
            self._datasets.clear()
        key = tuple(table.get("name") for table in notification.get("tables", ()))
        self._replace(self._datasets, key, data)
        while len(self._datasets) > MAX_DATASETS:
            self._bytes -= len(self._datasets.pop(next(iter(self._datasets))))

    def _take_model(self, data, cell_id):
        notification = _decode(data)
        model, method = notification["model_id"], notification["message"]["method"]
        if method in ("open", "close"):
            self._bytes -= sum(map(len, self._models.pop(model, ())))
            self._cells.pop(model, None)
            self._dropped.pop(model, None)
        self._is_saved &= method == "custom"
        if method == "open":
            self._cells[model] = cell_id
            self._models[model] = [data]
            self._bytes += len(data)
        elif method == "update" and model in self._models:
            messages = self._models[model]
            messages.append(data)
            self._bytes += len(data)
            if len(messages) > MAX_MODEL_UPDATES:
                self._bytes -= sum(map(len, messages))
                messages[:] = [_merged(messages)]
                self._bytes += len(messages[0])

    def _replace(self, kept, key, data):
        self._bytes += len(data) - len(kept.pop(key, b""))
        kept[key] = data

    def _make_room(self):
        """Drops the oldest entries. A new page lacks them until their cells run again."""
        for kept in (self._models, self._datasets, self._latest):
            while self._bytes > MAX_BYTES and kept:
                key = next(iter(kept))
                dropped = kept.pop(key)
                size = len(dropped) if isinstance(dropped, bytes) else sum(map(len, dropped))
                self._bytes -= size
                if kept is self._models:
                    self._dropped[key] = size


def _op_of(data):
    """Returns the op of a notification: marimo writes it first."""
    begin = len(b'{"op":"')
    return data[begin : data.index(b'"', begin)].decode()


def _merged(messages):
    """Merges the messages of a widget into one: returns an `open` with the resulting state."""
    if len(messages) == 1:
        return messages[0]
    notification = _decode(messages[0])
    first = notification["message"]
    for update in (_decode(data)["message"] for data in messages[1:]):
        kept = [
            (path, buffer)
            for path, buffer in zip(first["buffer_paths"], first["buffers"])
            if path and path[0] not in update["state"]
        ]
        kept += zip(update["buffer_paths"], update["buffers"])
        first["state"].update(update["state"])
        first["buffer_paths"] = [path for path, _ in kept]
        first["buffers"] = [buffer for _, buffer in kept]
        if update.get("esm_spec") is not None:
            first["esm_spec"] = update["esm_spec"]
    return _encode(notification)
