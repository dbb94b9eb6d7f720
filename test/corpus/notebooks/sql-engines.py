import marimo

app = marimo.App(sql_output="pandas")


@app.cell
def _():
    import sqlite3

    import duckdb
    import marimo as mo
    import pandas as pd
    return duckdb, mo, pd, sqlite3


@app.cell
def _(sqlite3):
    connection = sqlite3.connect(":memory:")
    connection.executescript("create table t (a integer, b text); insert into t values (1, 'x'), (2, null)")
    return (connection,)


@app.cell
def _(connection, mo):
    rows = mo.sql("select * from t order by a", engine=connection)
    return (rows,)


@app.cell
def _(rows):
    list(rows.b)
    return


@app.cell
def _(pd):
    people = pd.DataFrame({"name": ["ada", "bob", "cyd"], "age": [36, 41, 29]})
    return (people,)


@app.cell
def _(mo, people):
    older = mo.sql(f"""select name, age + 1 as next from people where age > {30} order by age""")
    return (older,)


@app.cell
def _(duckdb, older):
    duckdb.sql("select count(*) as n, avg(next) as m from older")
    return


@app.cell
def _(mo):
    mo.sql("create table kept as select range as n from range(5)")
    return


@app.cell
def _(duckdb):
    duckdb.sql("select sum(n) from range(5) t(n)").fetchall()
    return


@app.cell
def _(connection, mo):
    mo.sql("select * from missing", engine=connection)
    return


@app.cell
def _(mo):
    mo.sql("selec 1")
    return


if __name__ == "__main__":
    app.run()
