# /// script
# requires-python = ">=3.11"
# dependencies = ["marimo", "pandas"]
# ///
"""A monthly report of sales."""

import marimo

app = marimo.App(width="medium", app_title="Sales")


@app.cell
def _():
    import marimo as mo
    import pandas as pd
    return mo, pd


@app.cell
def _(mo):
    mo.md("""
    # Sales

    | what | how |
    | --- | --- |
    | `revenue` | $price \\times amount$ |
    """)
    return


@app.cell
def load(pd):
    sales = pd.DataFrame(
        {
            "day": pd.date_range("2026-01-29", periods=40, freq="D"),
            "region": ["north", "south", "east", None] * 10,
            "price": [round(3.5 + i * 0.25, 2) for i in range(40)],
            "amount": range(40),
        }
    ).astype({"region": "category", "amount": "Int64"})
    sales
    return (sales,)


@app.cell
def _(sales):
    sales.to_csv("sales-report.csv", index=False)
    print(open("sales-report.csv").readline())
    monthly = sales.assign(revenue=sales.price * sales.amount).groupby(sales.day.dt.to_period("M")).revenue.sum()
    monthly
    return (monthly,)


@app.cell
def _(monthly):
    monthly.to_dict()
    return


@app.cell
def _(sales):
    sales.pivot_table(index="region", values="price", aggfunc=["mean", "max"], observed=True)
    return


@app.cell
def _(sales):
    sales.info()
    return


@app.cell
def _(pd):
    pd.read_csv("sales-report.csv", parse_dates=["day"]).describe()
    return


@app.cell
def _(pd):
    pd.DataFrame({"n": [2**53 + 1, -(2**63), 0], "d": [None, 1.5, float("inf")], "t": ["<b>", "a\nb", "\u2028"]})
    return


@app.cell
def _(pd):
    pd.DataFrame({("a", "x"): [1], ("a", "y"): [2]}, index=pd.MultiIndex.from_tuples([(1, "k")]))
    return


@app.cell
def _(sales):
    sales["no such column"]
    return


if __name__ == "__main__":
    app.run()
