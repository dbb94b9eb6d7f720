import marimo

app = marimo.App()


@app.cell
def _():
    import csv
    import json
    import os
    import pathlib
    import tempfile
    import zipfile
    return csv, json, os, pathlib, tempfile, zipfile


@app.cell
def _(json, pathlib):
    folder = pathlib.Path("corpus-files")
    folder.mkdir(exist_ok=True)
    (folder / "a.json").write_text(json.dumps({"k": [1, 2]}))
    return (folder,)


@app.cell
def _(csv, folder):
    with open(folder / "b.csv", "w", newline="") as _stream:
        csv.writer(_stream).writerows([["a", "b"], [1, "x,y"]])
    print((folder / "b.csv").read_text())
    sorted(path.name for path in folder.iterdir())
    return


@app.cell
def _(folder, zipfile):
    with zipfile.ZipFile(folder / "c.zip", "w") as archive:
        archive.write(folder / "a.json", "a.json")
    zipfile.ZipFile(folder / "c.zip").namelist()
    return


@app.cell
def _(os, tempfile):
    with tempfile.NamedTemporaryFile("w+", suffix=".txt") as _stream:
        _stream.write("kept")
        _stream.flush()
        size = os.path.getsize(_stream.name)
    size, os.path.exists("no such file")
    return


@app.cell
def _():
    import local_module_of_nobody
    return


@app.cell
def _(folder):
    import sys

    (folder / "local_tools.py").write_text("def twice(n):\n    return 2 * n\n")
    sys.path.insert(0, str(folder))
    from local_tools import twice

    twice(21)
    return


@app.cell
def _():
    open("no/such/file.csv")
    return


@app.cell
def _():
    import marimo as mo

    (mo.notebook_dir() / "x").name, mo.notebook_dir().exists(), __file__.endswith("notebook.py")
    return


if __name__ == "__main__":
    app.run()
