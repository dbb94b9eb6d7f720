import marimo

app = marimo.App()

with app.setup:
    import math

    RADIUS = 2


@app.function
def area(radius):
    return math.pi * radius**2


@app.class_definition
class Circle:
    def __init__(self, radius):
        self.radius = radius


@app.cell
def named():
    one = area(RADIUS)
    one
    return (one,)


@app.cell
def _(one):
    x = one
    return (x,)


@app.cell
def _():
    x = 2
    return (x,)


@app.cell
def _(b):
    a = b
    return (a,)


@app.cell
def _(a):
    b = a
    return (b,)


@app.cell(disabled=True)
def _():
    off = 1
    return (off,)


@app.cell
def _(off):
    off
    return


@app.cell
def _():
    return


@app.cell
def _():
    # only a comment
    return


app._unparsable_cell(
    r"""
    this does not parse
    """,
    name="broken",
)


app._unparsable_cell(
    r"""
    from math import *
    """,
    name="_",
)


@app.cell
def _():
    _private = 1
    _private
    return


@app.cell
def _():
    Circle(3).radius
    return


if __name__ == "__main__":
    app.run()
