import marimo

app = marimo.App()


@app.cell
def _():
    import no_such_module
    import marimo as mo
    return mo, no_such_module


@app.cell
def _(mo):
    mo.md("""# A title that needs no module""")
    return


@app.cell
def _(mo):
    mo.md(f"""{1 + 1} is computed""")
    return


@app.cell
def _(mo):
    mo.vstack(["a"])
    return


@app.cell
def _():
    "no need of it"
    return


if __name__ == "__main__":
    app.run()
