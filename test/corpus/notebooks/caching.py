import marimo

app = marimo.App()


@app.cell
def _():
    import functools

    import marimo as mo
    return functools, mo


@app.cell
def _(mo):
    @mo.cache
    def square(n):
        print("computed", n)
        return n * n

    square(3), square(3), square(4)
    return (square,)


@app.cell
def _(square):
    square.hits, square.cache_info().misses
    return


@app.cell
def _(functools, mo):
    @mo.lru_cache(maxsize=1)
    def half(n):
        return n / 2

    @functools.cache
    def third(n):
        return n / 3

    half(1), half(2), third(9)
    return


@app.cell
def _(mo):
    with mo.persistent_cache("kept"):
        print("worked")
        kept = sum(range(1000))
    kept
    return


if __name__ == "__main__":
    app.run()
