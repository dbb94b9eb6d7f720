import marimo

app = marimo.App()


@app.cell
def _():
    import sys

    "IPython" in sys.modules
    return (sys,)


@app.cell
def _():
    from IPython.display import HTML, Image, JSON, Latex, Markdown, Math, clear_output, display, display_html

    return HTML, Image, JSON, Latex, Markdown, Math, clear_output, display, display_html


@app.cell
def _(HTML, Latex, Markdown, Math, display):
    display(HTML("<b>bold</b>"), Markdown("**bold** $x^2$"), Latex(r"$\theta$"), Math(r"\frac{a}{b}"))
    return


@app.cell
def _(display):
    import pandas as pd

    for column in ("a", "b"):
        display(pd.DataFrame({column: [1, 2]}))
    print("printed after the tables")
    return (pd,)


@app.cell
def _(HTML, display):
    handle = display(HTML("first"), display_id=True)
    handle.update(HTML("second"))
    return


@app.cell
def _(Markdown):
    Markdown("# The value of a cell")
    return


@app.cell
def _(Image):
    Image(url="https://example.org/picture.png")
    return


@app.cell
def _(JSON):
    JSON({"a": [1, None]})
    return


@app.cell
def _(display):
    display({"text/plain": "a bundle", "text/html": "<i>a bundle</i>"}, raw=True)
    return


@app.cell
def _(clear_output, display):
    display("gone")
    clear_output()
    print("kept")
    return


@app.cell
def _(display_html):
    display_html("<u>raw</u>", raw=True)
    return


@app.cell
def _():
    class Pretty:
        def _repr_pretty_(self, printer, cycle):
            printer.text("pretty")

        def __repr__(self):
            return "plain"

    Pretty()
    return


@app.cell
def _(sys):
    sys.modules["IPython"].get_ipython() is None
    return


if __name__ == "__main__":
    app.run()
