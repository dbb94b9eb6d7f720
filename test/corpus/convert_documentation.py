"""Writes the Jupyter notebooks of a folder as notebooks of marimo into another folder, by the converter of the server."""

import os
import sys

HOST, SOURCE, TARGET = sys.argv[1:]
sys.path.insert(0, HOST)

from conversion.notebook_files import read_notebook  # noqa: E402
from conversion.notebook_ir import write_py  # noqa: E402

for project in sorted(os.listdir(SOURCE)):
    if not os.path.isdir(os.path.join(SOURCE, project)):
        continue
    for file in sorted(os.listdir(os.path.join(SOURCE, project))):
        if file.endswith(".ipynb"):
            with open(os.path.join(SOURCE, project, file), encoding="utf-8") as notebook:
                text = write_py(read_notebook(notebook.read(), "ipynb"))
            with open(os.path.join(TARGET, f"{project}-{file.removesuffix('.ipynb')}.py"), "w", encoding="utf-8") as out:
                out.write(text)
