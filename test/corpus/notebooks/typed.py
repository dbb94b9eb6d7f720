import marimo

app = marimo.App()


@app.cell
def _():
    from typing import Generic, NamedTuple, Protocol, TypeVar
    return Generic, NamedTuple, Protocol, TypeVar


@app.cell
def _(Generic, NamedTuple, Protocol, TypeVar):
    T = TypeVar("T")

    class Box(Generic[T]):
        def __init__(self, value: T) -> None:
            self.value = value

    class Shaped(Protocol):
        shape: tuple[int, ...]

    class Pair(NamedTuple):
        left: int
        right: str = "r"
    return Box, Pair


@app.cell
def _(Box, Pair):
    Pair(1), Box[int](2).value, Box.__orig_bases__
    return


@app.cell
def _():
    match {"kind": "circle", "r": 2}:
        case {"kind": "circle", "r": radius}:
            found = radius
        case _:
            found = None
    found
    return


@app.cell
def _():
    import contextlib

    @contextlib.contextmanager
    def noted(name):
        print("enter", name)
        try:
            yield name.upper()
        finally:
            print("leave", name)

    with noted("a") as upper, contextlib.suppress(KeyError):
        print(upper)
        {}["k"]
    return


@app.cell
def _():
    total = 0
    for number in range(5):
        if number % 2:
            continue
        total += number
    else:
        total += 100
    [total, number, (square := number**2), [n for n in range(square) if n % 5 == 0]]
    return


@app.cell
def _():
    import pickle
    import sys

    class Kept:
        def __init__(self):
            self.value = 1

    pickle.loads(pickle.dumps(Kept())).value, Kept.__module__, __name__, sys.modules["__main__"].__name__
    return


@app.cell
def _():
    import inspect

    def source():
        """Its documentation."""
        return 1

    print(inspect.getsource(source))
    inspect.getdoc(source), source.__module__
    return


@app.cell
def _():
    globals()["hidden"] = 1
    sorted(name for name in locals() if name in ("hidden", "__builtin__"))
    return


if __name__ == "__main__":
    app.run()
