import marimo

app = marimo.App()


@app.cell
def _():
    import altair as alt
    import marimo as mo
    import pandas as pd
    return alt, mo, pd


@app.cell
def _(pd):
    points = pd.DataFrame({"x": range(30), "y": [i * i % 17 for i in range(30)], "kind": list("abc") * 10})
    return (points,)


@app.cell
def _(alt, points):
    chart = alt.Chart(points).mark_line().encode(x="x", y="y:Q", color="kind:N")
    chart
    return (chart,)


@app.cell
def _(chart, points, alt):
    (chart + alt.Chart(points).mark_rule().encode(y="mean(y)")) | chart.mark_bar()
    return


@app.cell
def _(chart, mo):
    shown = mo.ui.altair_chart(chart)
    shown
    return (shown,)


@app.cell
def _(shown):
    shown.value
    return


@app.cell
def _(alt, pd):
    alt.Chart(pd.DataFrame({"n": range(6000)})).mark_point().encode(x="n:Q")
    return


@app.cell
def _(alt):
    alt.Chart("nothing").mark_point().encode(x=3)
    return


if __name__ == "__main__":
    app.run()
