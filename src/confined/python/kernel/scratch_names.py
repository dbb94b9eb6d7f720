"""
The names that were defined by code calls with `keep`. The code of such a call has these names as globals, in addition
to the notebook's names.

- The code of all such calls has one dictionary as its globals, so functions of an earlier call see later definitions.
- When a call begins, the notebook's names are copied into it. The code may define them again for later calls; a cell that
  defines the name after that replaces the value.
- Cells never see these names. They end with the kernel.
"""


class ScratchNames:
    def __init__(self):
        self._names = None  # made by the first call
        self._seen = {}  # the notebook's names and values when this dictionary last got them

    def globals_with(self, notebook: dict) -> dict:
        """Returns the globals for the code of a call, with the notebook's names as they are now."""
        if self._names is None:
            self._names, self._seen = dict(notebook), dict(notebook)
        else:
            self.follow(notebook)
        return self._names

    def follow(self, notebook: dict):
        """Copies the names that cells have defined or deleted since the last time, so that no value
        outlives its cell here.
        """
        names, seen = self._names, self._seen
        if names is None:
            return
        for name, value in notebook.items():
            if name not in seen or seen[name] is not value:
                names[name] = seen[name] = value
        for name in [name for name in seen if name not in notebook]:
            value = seen.pop(name)
            if names.get(name) is value:
                del names[name]
