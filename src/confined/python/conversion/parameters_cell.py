"""The `parameters` cell of papermill: the first cell with that tag, whose values papermill replaces by the parameters of a run."""

import ast
import re

# a line that IPython runs as a command or a question for help, perhaps after blanks
COMMAND = re.compile(r"(?m)^(?P<indent>[ \t]*)(?:[%!?](?:.*\\\n)*.*|[^#'\"\n]*[\w)\]]\?{1,2}[ \t]*)$")
# the output of a command as a value: `files = !ls`
COMMAND_VALUE = re.compile(r"(?m)^(?P<target>[ \t]*[A-Za-z_][\w, \t]*=)[ \t]*[%!].*$")
# cell magics whose text is Python
PYTHON_CELL = re.compile(r"\A\s*%%(?:time|timeit|capture|prun)\b.*\n")


def with_arguments(cells) -> list:
    """Returns the cells of a Jupyter notebook, with a changed `parameters` cell that takes the
    arguments of the notebook (`troupe run -p month=3`). Each name that the cell sets gets the value of the argument of that name, if
    there is one."""
    at = next((at for at, cell in enumerate(cells) if is_parameters(cell)), None)
    if at is None:
        return cells
    cell = cells[at]
    source = cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
    always, perhaps = find_names(source)
    if not always and not perhaps:
        return cells
    lines = [f"{name} = _arguments.get({name!r}, {name})" for name in always]
    lines += [f"if {name!r} in _arguments:\n    {name} = _arguments[{name!r}]" for name in perhaps]
    taken = ["", "# arguments of the notebook, as `troupe run -p name=value` gives them", "import marimo as _marimo"]
    code = "\n".join([source.rstrip("\n"), *taken, "_arguments = _marimo.cli_args()", *lines])
    return [*cells[:at], {**cell, "source": code}, *cells[at + 1 :]]


def is_parameters(cell) -> bool:
    tags = cell.get("metadata", {}).get("tags")
    return cell["cell_type"] == "code" and isinstance(tags, list) and "parameters" in tags


def find_names(source) -> tuple[list, list]:
    """
    Returns the names that the cell always sets, and the names that it may set, such as `month: int` or a name within
    an `if`, in order. Returns none when the code is not Python, even with the commands of IPython.
    """
    body = parse(source)
    if body is None:
        body = parse(without_commands(source)) or []
    always = []
    for node in body:
        if isinstance(node, ast.Assign):
            always += [name for target in node.targets for name in names_in(target)]
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            always += names_in(node.target)
    perhaps = [name for node in body for name in names_in(node)]
    always = [name for name in dict.fromkeys(always) if not name.startswith("_")]
    return always, [name for name in dict.fromkeys(perhaps) if name not in always and not name.startswith("_")]


def parse(source):
    """Returns the statements of the text; None when it is not Python."""
    try:
        return ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def without_commands(source) -> str:
    """Returns the text with `pass` in the place of IPython's commands, which are not Python."""
    text = COMMAND_VALUE.sub(r"\g<target> None", PYTHON_CELL.sub("", source))
    if text.lstrip().startswith("%%"):
        return ""  # the whole cell is in another language
    return COMMAND.sub(r"\g<indent>pass", text)


def names_in(node) -> list:
    """
    Returns the variables of the cell that a statement or target sets. Local variables of functions, classes and
    comprehensions do not count.
    """
    if isinstance(node, ast.Name):
        return [node.id] if isinstance(node.ctx, ast.Store) else []
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        return []
    return [name for child in ast.iter_child_nodes(node) for name in names_in(child)]
