"""
Faster versions, with the same results, of scans of the notebook's graph that marimo repeats for every cell of a run.

imported_namespaces: asked n² times a run; it follows from `variable_data`, which nothing changes once a cell is
compiled. is_disabled: marimo walks all ancestors of a cell, for all cells. If no cell is disabled, this is remembered
until a cell is added or configured. ancestors, descendants: computed several times for each cell of a run, by code
for closures of every kind. get_referring_cells: called for every variable after every change. marimo compares the
variable with the names in every cell; here each graph keeps the cells by the names in them.
"""

import functools

from marimo._ast.cell import CellConfig, CellImpl
from marimo._runtime.dataflow import edges
from marimo._runtime.dataflow.graph import DirectedGraph
from marimo._runtime.dataflow.topology import MutableGraphTopology


def install():
    """Patches marimo in this process; once, in the zygote."""
    cached = functools.cached_property(_frozen(CellImpl.imported_namespaces.fget))
    cached.__set_name__(CellImpl, "imported_namespaces")
    CellImpl.imported_namespaces = cached
    DirectedGraph.is_disabled = _unless_none_is(DirectedGraph.is_disabled)
    CellConfig.configure = _noting_change(CellConfig.configure)
    MutableGraphTopology.add_node = _noting_names(MutableGraphTopology.add_node)
    MutableGraphTopology.remove_node = _forgetting_names(MutableGraphTopology.remove_node)
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


class Changes:
    """Counts the cells that were added to any graph or configured."""

    count = 0


def _noting_change(configure):
    def configure_and_note(self, update):
        Changes.count += 1
        configure(self, update)

    return configure_and_note


def _unless_none_is(is_disabled):
    def is_disabled_if_any(self, cell_id):
        topology = self.topology
        if cell_id not in topology.cells or not _is_none_disabled(topology):
            return is_disabled(self, cell_id)
        return False

    return is_disabled_if_any


def _is_none_disabled(topology) -> bool:
    if topology.__dict__.get("_none_disabled_at") == Changes.count:
        return True
    if any(cell.config.disabled for cell in topology.cells.values()):
        return False
    topology._none_disabled_at = Changes.count
    return True


def _noting_names(add_node):
    def add_node_and_note(self, cell_id, cell):
        add_node(self, cell_id, cell)
        Changes.count += 1
        names = self.__dict__.setdefault("_names", {})[cell_id] = tuple(getattr(cell, "refs", ()))
        cells_by_name = self.__dict__.setdefault("_cells_by_name", {})
        for name in names:
            cells_by_name.setdefault(name, set()).add(cell_id)

    return add_node_and_note


def _forgetting_names(remove_node):
    def remove_node_and_forget(self, cell_id):
        remove_node(self, cell_id)
        for name in self._names.pop(cell_id):
            cells = self._cells_by_name[name]
            cells.discard(cell_id)
            if not cells:
                del self._cells_by_name[name]

    return remove_node_and_forget


def _by_name(get_referring_cells):
    def get_referring_cells_by_name(name, language, topology):
        if language == "sql":  # a query also refers to the parts of a qualified name
            return get_referring_cells(name, language, topology)
        return set(topology.__dict__.get("_cells_by_name", {}).get(name, ()))

    return get_referring_cells_by_name
