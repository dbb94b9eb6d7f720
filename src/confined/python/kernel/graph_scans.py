"""
Faster versions, with the same results, of scans of the notebook's graph that marimo repeats for every cell of a run.

imported_namespaces: asked n² times a run; it follows from `variable_data`, which nothing changes once a cell is
compiled. is_disabled: marimo walks all ancestors of a cell, for all cells. If no cell is disabled, this is remembered
until a cell is disabled. ancestors, descendants: computed several times for each cell of a run, by code
for closures of every kind. get_referring_cells: called for every variable after every change. marimo compares the
variable with the names in every cell; here each graph keeps the cells by the names in them. get_multiply_defined: marimo
sorts all names after every change; here each graph keeps the names that several cells define. modules: marimo asks
every cell for its imports, twice for each changed cell; here each graph counts the cells that import a module.
"""

import functools

from collections import Counter

from marimo._ast.cell import CellConfig, CellImpl
from marimo._runtime.dataflow import edges
from marimo._runtime.dataflow.definitions import DefinitionRegistry
from marimo._runtime.dataflow.graph import DirectedGraph
from marimo._runtime.dataflow.topology import MutableGraphTopology
from marimo._runtime.packages.module_registry import ModuleRegistry


def install():
    """Patches marimo in this process; once, in the zygote."""
    cached = functools.cached_property(_frozen(CellImpl.imported_namespaces.fget))
    cached.__set_name__(CellImpl, "imported_namespaces")
    CellImpl.imported_namespaces = cached
    DirectedGraph.is_disabled = _unless_none_is(DirectedGraph.is_disabled)
    CellConfig.configure = _noting_disabled(CellConfig.configure)
    MutableGraphTopology.add_node = _noting_cell(MutableGraphTopology.add_node)
    MutableGraphTopology.remove_node = _forgetting_cell(MutableGraphTopology.remove_node)
    ModuleRegistry.modules = lambda self: set(_facts_of(self.graph.topology).modules)
    DefinitionRegistry.register_definition = _noting_shared(DefinitionRegistry.register_definition)
    DefinitionRegistry.unregister_definitions = _forgetting_shared(DefinitionRegistry.unregister_definitions)
    DefinitionRegistry.get_multiply_defined = _list_shared
    edges.get_referring_cells = _by_name(edges.get_referring_cells)
    MutableGraphTopology.ancestors = lambda self, cell_id: _find_linked(self.parents, cell_id)
    MutableGraphTopology.descendants = lambda self, cell_id: _find_linked(self.children, cell_id)


def find_ancestors(graph, cell_ids) -> set:
    """Returns the ancestors of all of these cells. Some of the given cells may be ancestors of others."""
    parents = graph.parents
    around = _close(parents, {cell_id for cell_id in cell_ids if cell_id in parents})
    return set().union(*map(parents.__getitem__, around))


def _find_linked(links, cell_id):
    """Returns the cells to which links lead from this one; it is not one of them itself, even in a cycle."""
    linked = _close(links, {cell_id})
    linked.discard(cell_id)
    return linked


def _close(links, found):
    """Adds to `found` all cells to which links lead from it, and returns it."""
    queue = list(found)
    while queue:
        if new := links[queue.pop()] - found:
            found |= new
            queue += new
    return found


def _frozen(find_namespaces):
    return lambda cell: frozenset(find_namespaces(cell))


class Disabled:
    """Counts how often a cell of any graph was configured as disabled."""

    count = 0


def _noting_disabled(configure):
    def configure_and_note(self, update):
        configure(self, update)
        Disabled.count += self.disabled

    return configure_and_note


def _unless_none_is(is_disabled):
    def is_disabled_if_any(self, cell_id):
        topology = self.topology
        if cell_id not in topology.cells or not _is_none_disabled(topology):
            return is_disabled(self, cell_id)
        return False

    return is_disabled_if_any


def _is_none_disabled(topology) -> bool:
    facts = _facts_of(topology)
    if facts.none_disabled_at == Disabled.count:
        return True
    if any(cell.config.disabled for cell in topology.cells.values()):
        return False
    facts.none_disabled_at = Disabled.count
    return True


class _Facts:
    """What a graph's cells have in common, kept while cells come and go."""

    def __init__(self):
        self.names = {}  # cell id -> the names to which the cell refers
        self.cells_by_name = {}
        self.modules = Counter()  # module -> how many cells import it
        self.none_disabled_at = -1  # the count of Disabled when no cell was disabled; each later cell was not either


def _facts_of(topology) -> _Facts:
    facts = topology.__dict__.get("_facts")
    if facts is None:
        facts = topology._facts = _Facts()
    return facts


def _noting_cell(add_node):
    def add_node_and_note(self, cell_id, cell):
        add_node(self, cell_id, cell)
        facts = _facts_of(self)
        if cell is not None and cell.config.disabled:
            facts.none_disabled_at = -1
        names = facts.names[cell_id] = tuple(getattr(cell, "refs", ()))
        for name in names:
            facts.cells_by_name.setdefault(name, set()).add(cell_id)
        facts.modules.update(getattr(cell, "imported_namespaces", ()))

    return add_node_and_note


def _forgetting_cell(remove_node):
    def remove_node_and_forget(self, cell_id):
        cell = self.cells.get(cell_id)
        remove_node(self, cell_id)
        facts = _facts_of(self)
        for name in facts.names.pop(cell_id):
            cells = facts.cells_by_name[name]
            cells.discard(cell_id)
            if not cells:
                del facts.cells_by_name[name]
        for module in getattr(cell, "imported_namespaces", ()):
            facts.modules[module] -= 1
            if facts.modules[module] == 0:
                del facts.modules[module]

    return remove_node_and_forget


def _by_name(get_referring_cells):
    def get_referring_cells_by_name(name, language, topology):
        if language == "sql":  # a query also refers to the parts of a qualified name
            return get_referring_cells(name, language, topology)
        return set(_facts_of(topology).cells_by_name.get(name, ()))

    return get_referring_cells_by_name


def _noting_shared(register_definition):
    def register_definition_and_note(self, cell_id, name, variable_data):
        siblings = register_definition(self, cell_id, name, variable_data)
        if siblings:
            self.__dict__.setdefault("_shared", set()).add(self._conflict_key(name, variable_data[-1]))
        return siblings

    return register_definition_and_note


def _forgetting_shared(unregister_definitions):
    def unregister_definitions_and_note(self, cell_id, variable_data):
        unregister_definitions(self, cell_id, variable_data)
        if shared := self.__dict__.get("_shared"):
            for name, data in variable_data.items():
                key = self._conflict_key(name, data[-1])
                if len(self.definition_conflicts.get(key, ())) < 2:
                    shared.discard(key)

    return unregister_definitions_and_note


def _list_shared(self):
    """Returns each name that several cells define with these cells, in marimo's order."""
    shared = [(self.conflict_names[key], key) for key in self.__dict__.get("_shared", ())]
    return [(name, self.definition_conflicts[key]) for name, key in sorted(shared)]
