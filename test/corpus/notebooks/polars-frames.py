import marimo

app = marimo.App()


@app.cell
def _():
    from datetime import date, timedelta
    from decimal import Decimal

    import polars as pl
    return Decimal, date, pl, timedelta


@app.cell
def _(Decimal, date, pl, timedelta):
    frame = pl.DataFrame(
        {
            "day": [date(2026, 2, 27) + timedelta(days=i) for i in range(4)],
            "price": [Decimal("1.10"), None, Decimal("3.30"), Decimal("4.40")],
            "tags": [["a", "b"], [], None, ["c"]],
            "what": [{"k": 1}, {"k": 2}, None, {"k": 4}],
            "big": [2**62, -1, 0, None],
        }
    )
    frame
    return (frame,)


@app.cell
def _(frame):
    print(frame)
    frame.schema
    return


@app.cell
def _(frame, pl):
    frame.lazy().group_by(pl.col("day").dt.month()).agg(pl.col("price").sum(), pl.len()).sort("day")
    return


@app.cell
def _(frame, pl):
    frame.lazy().group_by(pl.col("day").dt.month()).agg(pl.col("price").sum(), pl.len()).sort("day").collect()
    return


@app.cell
def _(frame):
    frame["price"]
    return


@app.cell
def _(frame):
    frame.write_parquet("polars-frames.parquet")
    return


@app.cell
def _(pl):
    pl.DataFrame({"n": range(100_000)}).select(pl.col("n").sum())
    return


@app.cell
def _(pl):
    pl.DataFrame({"a": [1]}).select(pl.col("b"))
    return


if __name__ == "__main__":
    app.run()
