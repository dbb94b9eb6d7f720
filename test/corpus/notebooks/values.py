import marimo

app = marimo.App()


@app.cell
def _():
    import datetime
    import decimal
    import enum
    import fractions
    import pathlib
    from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
    from dataclasses import dataclass
    return (
        Counter,
        OrderedDict,
        dataclass,
        datetime,
        decimal,
        defaultdict,
        deque,
        enum,
        fractions,
        namedtuple,
        pathlib,
    )


@app.cell
def _():
    None
    return


@app.cell
def _():
    "text with <b>tags</b>\nand lines"
    return


@app.cell
def _():
    b"bytes \x00\xff"
    return


@app.cell
def _():
    {"a": [1, 2.5, None, True, {"b": (1, 2)}], 3: {1}, "big": 2**80, "nan": float("nan")}
    return


@app.cell
def _():
    [1, [2, [3]]], ("x",), {1, 2}, frozenset({3}), range(3), 1 + 2j, ...
    return


@app.cell
def _(Counter, OrderedDict, defaultdict, deque, namedtuple):
    [Counter("aab"), OrderedDict(a=1), defaultdict(list, k=[1]), deque([1, 2], 3), namedtuple("P", "x y")(1, 2)]
    return


@app.cell
def _(datetime, decimal, fractions, pathlib):
    [
        datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc),
        datetime.timedelta(hours=30),
        decimal.Decimal("1.10"),
        fractions.Fraction(1, 3),
        pathlib.PurePosixPath("/tmp"),
    ]
    return


@app.cell
def _(dataclass, enum):
    class Colour(enum.Enum):
        RED = 1

    @dataclass
    class Point:
        x: int
        y: Colour = Colour.RED

    Point(1)
    return Colour, Point


@app.cell
def _(Colour, Point):
    {"p": Point(2), "c": Colour.RED, "t": Point, "f": len}
    return


@app.cell
def _():
    lambda n: n
    return


@app.cell
def _():
    (i for i in range(3))
    return


@app.cell
def _():
    list(range(10_000))
    return


@app.cell
def _():
    "é" * 10
    return


@app.cell
def _():
    import string

    string
    return


@app.cell
def _():
    4.0;
    return


if __name__ == "__main__":
    app.run()
