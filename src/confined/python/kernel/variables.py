"""Keeps marimo from reporting all variables of a notebook after a change that has changed none of them.

marimo makes the report after every change of the notebook's graph, from all names that the graph defines. Here the graph notes
the names whose cells come and go. If the same cells as in the last report declare and use each of these names, no report is
made.
"""

from marimo._messaging.notification import VariablesNotification
from marimo._runtime import runtime
from marimo._runtime.dataflow.definitions import DefinitionRegistry
from marimo._runtime.dataflow.topology import MutableGraphTopology


class Declared(dict):
    """marimo's dictionary of the names that a notebook defines, each with its cells. It also notes changes."""

    is_repeated = False  # whether the report that is being made would be the same as the last one

    def __init__(self, graph):
        super().__init__(graph.definitions)
        self._graph = graph
        self._reported = {}  # name -> (cells that declare it, cells that use it)
        self.noted = set(self)  # the names whose cells may have changed since the last report

    def items(self):
        """Returns the names for a report, or none when the report would be the same as the last one. Only the report asks."""
        noted, self.noted = self.noted, set()
        changed = [name for name in noted if self._has_changed(name)]
        Declared.is_repeated = not changed
        return super().items() if changed else ()

    def _has_changed(self, name):
        before, now = self._reported.pop(name, None), None
        if name in self:
            now = self._reported[name] = (frozenset(self[name]), frozenset(self._graph.get_referring_cells(name, language="python")))
        return before != now


def install():
    """Patches marimo in this process; once, in the zygote."""
    DefinitionRegistry.register_definition = _noting_name(DefinitionRegistry.register_definition)
    DefinitionRegistry.unregister_definitions = _noting_names(DefinitionRegistry.unregister_definitions)
    MutableGraphTopology.add_node = _noting_uses(MutableGraphTopology.add_node)
    MutableGraphTopology.remove_node = _noting_uses(MutableGraphTopology.remove_node)
    runtime.VariablesNotification = lambda variables: None if Declared.is_repeated else VariablesNotification(variables=variables)
    runtime.broadcast_notification = _unless_none(runtime.broadcast_notification)


def follow(graph):
    """Begins to note the changes of a notebook's graph."""
    if not isinstance(graph.definitions, Declared):
        declared = graph.definition_registry.definitions = Declared(graph)
        graph.topology._declared = declared


def _noting_name(register_definition):
    def register_definition_and_note(self, cell_id, name, variable_data):
        if isinstance(self.definitions, Declared):
            self.definitions.noted.add(name)
        return register_definition(self, cell_id, name, variable_data)

    return register_definition_and_note


def _noting_names(unregister_definitions):
    def unregister_definitions_and_note(self, cell_id, variable_data):
        if isinstance(self.definitions, Declared):
            self.definitions.noted.update(variable_data)
        unregister_definitions(self, cell_id, variable_data)

    return unregister_definitions_and_note


def _noting_uses(change):
    def change_and_note(self, cell_id, *cell):
        declared = self.__dict__.get("_declared")
        if declared is not None:  # it may be empty
            declared.noted.update(getattr(cell[0] if cell else self.cells.get(cell_id), "refs", ()))
        change(self, cell_id, *cell)

    return change_and_note


def _unless_none(broadcast):
    def broadcast_unless_none(notification, *args, **kwargs):
        if notification is not None:
            broadcast(notification, *args, **kwargs)

    return broadcast_unless_none
