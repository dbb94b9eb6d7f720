"""Lists marimo notebooks of git repositories, each with the imports that the interpreter lacks, as JSON.

Arguments: pairs of a git directory and a commit. A path may have a prefix: DIRECTORY COMMIT PREFIX triples.
"""

import ast
import importlib.util
import json
import subprocess
import sys


def git(directory: str, *args: str) -> str:
    return subprocess.run(["git", "--git-dir", directory, *args], check=True, capture_output=True, text=True).stdout


def lacking(source: str) -> list[str]:
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module.split(".")[0])
    return sorted(name for name in names if importlib.util.find_spec(name) is None)


def main() -> None:
    found = []
    args = sys.argv[1:]
    for directory, commit, prefix in zip(args[::3], args[1::3], args[2::3], strict=True):
        for path in git(directory, "ls-tree", "-r", "--name-only", commit).splitlines():
            if not path.endswith(".py") or not path.startswith(prefix):
                continue
            source = git(directory, "show", f"{commit}:{path}")
            if "marimo.App(" not in source:
                continue
            try:
                missing = lacking(source)
            except (SyntaxError, ValueError):
                continue
            found.append({"directory": directory, "path": path, "lacking": missing, "source": source})
    json.dump(found, sys.stdout)


main()
