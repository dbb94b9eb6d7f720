import marimo

app = marimo.App(layout_file=None, css_file="missing.css")


@app.cell
def _():
    import marimo as mo
    import pandas as pd
    return mo, pd


@app.cell
def _(mo, pd):
    mo.vstack([mo.md("**left**"), mo.hstack([pd.DataFrame({"a": [1, 2]}), 3, "four"], justify="start"), None])
    return


@app.cell
def _(mo):
    mo.tabs({"one": mo.md("first"), "two": mo.stat(42, label="answer", caption="of all", direction="increase")})
    return


@app.cell
def _(mo):
    mo.accordion({"more": mo.callout("watch out", kind="warn")}, multiple=True)
    return


@app.cell
def _(mo):
    mo.tree({"a": [1, {"b": None}], "c": mo.md("d")}, label="tree")
    return


@app.cell
def _(mo):
    mo.mermaid("graph LR\n A --> B")
    return


@app.cell
def _(mo):
    mo.Html("<marquee>old</marquee>"), mo.icon("lucide:rocket"), mo.as_html({"k": 1})
    return


@app.cell
def _(mo):
    mo.download(b"a,b\n", filename="data.csv", mimetype="text/csv")
    return


@app.cell
def _(mo):
    mo.image(b"\x89PNG\r\n\x1a\n" + bytes(20), alt="nothing", width=20)
    return


@app.cell
def _(mo):
    mo.audio(b"RIFF" + bytes(40)), mo.video(b"\x00" * 20)
    return


@app.cell
def _(mo):
    mo.lazy(lambda: mo.md("late"), show_loading_indicator=True)
    return


@app.cell
def _(mo):
    mo.plain_text("plain <text>"), mo.plain({"k": [1]}), mo.json({"k": [1]})
    return


@app.cell
def _(mo):
    mo.md(f"text with {mo.ui.slider(1, 3)} and {mo.as_html([1])} and \n\n```python\nx = 1\n```\n\n- [ ] task\n\n:rocket:")
    return


@app.cell
def _(mo):
    mo.output.append("one")
    mo.output.append(mo.md("two"))
    mo.output.replace_at_index("zero", 0)
    return


@app.cell
def _(mo):
    mo.output.replace("shown")
    "last"
    return


@app.cell
def _(mo):
    mo.routes({"#/": mo.md("home"), mo.routes.CATCH_ALL: "none"})
    return


@app.cell
def _(mo):
    mo.sidebar([mo.md("# side")])
    return


@app.cell
def _(mo):
    mo.outline(), mo.nav_menu({"#a": "A"})
    return


if __name__ == "__main__":
    app.run()
