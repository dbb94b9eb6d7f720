import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo
    return (mo,)


@app.cell
def _(mo):
    with mo.status.spinner("thinking", remove_on_exit=True) as spinner:
        spinner.update("still")
    "thought"
    return


@app.cell
def _(mo):
    [n for n in mo.status.progress_bar(range(3), remove_on_exit=True)]
    return


@app.cell
def _(mo):
    thread = mo.Thread(target=lambda: print("in a thread of marimo"))
    thread.start()
    thread.join()
    return


@app.cell
def _(mo):
    mo.stop(True)
    return


@app.cell
def _(mo):
    mo.stop(True, "stopped here")
    never = 1
    return (never,)


@app.cell
def _(never):
    never
    return


@app.cell
def _(mo):
    with mo.persistent_cache(name="never"):
        mo.stop(True)
    return


@app.cell
def _(mo):
    mo.watch.file("no-such-file"), mo.defs(), mo.refs()
    return


if __name__ == "__main__":
    app.run()
