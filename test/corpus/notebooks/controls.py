import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo
    import pandas as pd
    return mo, pd


@app.cell
def _(mo):
    slider = mo.ui.slider(1, 10, value=4, label="*n*", show_value=True)
    number = mo.ui.number(start=0, stop=5, step=0.5)
    slider, number
    return number, slider


@app.cell
def _(number, slider):
    slider.value * 2, number.value
    return


@app.cell
def _(mo):
    form = mo.md("{name} {when}").batch(name=mo.ui.text("ada"), when=mo.ui.date("2026-01-02")).form()
    form
    return (form,)


@app.cell
def _(form, mo):
    mo.stop(form.value is None, mo.md("send the form first"))
    form.value["name"]
    return


@app.cell
def _(mo):
    mo.ui.dropdown({"one": 1, "two": 2}, value="two"), mo.ui.multiselect(["a", "b"]), mo.ui.radio(["x", "y"], value="x")
    return


@app.cell
def _(mo):
    elements = mo.ui.dictionary({"a": mo.ui.checkbox(True), "b": mo.ui.array([mo.ui.switch(), mo.ui.text_area("t")])})
    elements.value
    return


@app.cell
def _(mo, pd):
    table = mo.ui.table(pd.DataFrame({"a": range(30), "b": list("xyz") * 10}), page_size=5, selection="multi")
    table
    return (table,)


@app.cell
def _(table):
    table.value
    return


@app.cell
def _(mo, pd):
    mo.ui.dataframe(pd.DataFrame({"a": [1, 2]})), mo.ui.data_explorer(pd.DataFrame({"a": [1, 2]}))
    return


@app.cell
def _(mo):
    get_count, set_count = mo.state(0)
    return get_count, set_count


@app.cell
def _(get_count, set_count):
    count = get_count()
    print("count", count)
    if count < 3:
        set_count(count + 1)
    return (count,)


@app.cell
def _(count):
    count
    return


@app.cell
def _(mo):
    mo.ui.button(value=1, on_click=lambda n: n + 1), mo.ui.run_button(), mo.ui.refresh(), mo.ui.file(), mo.ui.microphone()
    return


@app.cell
def _(mo):
    mo.ui.code_editor("x = 1", language="python"), mo.ui.tabs({"a": "b"}), mo.ui.range_slider(0, 10)
    return


@app.cell
def _(mo):
    mo.ui.slider(5, 1)
    return


@app.cell
def _(mo):
    mo.cli_args().to_dict(), mo.query_params().to_dict(), mo.running_in_notebook(), mo.app_meta().mode
    return


if __name__ == "__main__":
    app.run()
