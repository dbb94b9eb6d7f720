"""The `parameters` cell of papermill: the first cell with that tag, whose assignments papermill replaces by the parameters of a run."""

import ast


def with_arguments(cells) -> list:
    """Returns the cells of a Jupyter notebook, with a changed `parameters` cell that takes the
    arguments of the notebook (`troupe run -p month=3`). Each name that a line of the cell sets
    gets the value of the argument of that name, if there is one."""
    at = next((at for at, cell in enumerate(cells) if is_parameters(cell)), None)
    if at is None:
        return cells
    cell = cells[at]
    source = cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
    names = find_names(source)
    if not names:
        return cells
    lines = [f"{name} = _arguments.get({name!r}, {name})" for name in names]
    taken = ["", "# arguments of the notebook, as `troupe run -p name=value` gives them", "import marimo as _marimo"]
    code = "\n".join([source.rstrip("\n"), *taken, "_arguments = _marimo.cli_args()", *lines])
    return [*cells[:at], {**cell, "source": code}, *cells[at + 1 :]]


def is_parameters(cell) -> bool:
    tags = cell.get("metadata", {}).get("tags")
    return cell["cell_type"] == "code" and isinstance(tags, list) and "parameters" in tags


def find_names(source) -> list:
    """Returns the names that lines of the cell set, in order; none when it is not plain Python."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    targets = []
    for node in body:
        if isinstance(node, ast.Assign):
            targets += node.targets
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets.append(node.target)
    names = [target.id for target in targets if isinstance(target, ast.Name) and not target.id.startswith("_")]
    return list(dict.fromkeys(names))
