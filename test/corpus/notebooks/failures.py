import marimo

app = marimo.App()


@app.cell
def _():
    def deep(n):
        return 1 / n if n == 0 else deep(n - 1)
    return (deep,)


@app.cell
def _(deep):
    try:
        deep(3)
    except ZeroDivisionError as error:
        raise ValueError("a chain\nof two lines") from error
    return


@app.cell
def _():
    raise SystemExit(3)
    return


@app.cell
def _():
    raise ExceptionGroup("several", [KeyError("k"), TypeError("t")])
    return


@app.cell
def _():
    class Odd(Exception):
        def __str__(self):
            return "<i>odd</i> & é"

    raise Odd
    return


@app.cell
def fails():
    before = 1
    missing
    after = 2
    return after, before


@app.cell
def _(before):
    before
    return


@app.cell
def _(after):
    after
    return


@app.cell
def _():
    assert 1 == 2, "they differ"
    return


@app.cell
def _():
    exec("def f(:")
    return


@app.cell
def _():
    import no_such_module
    return


@app.cell
def _():
    from math import no_such_name
    return


@app.cell
def _():
    print("shown")
    "value"
    return


if __name__ == "__main__":
    app.run()
