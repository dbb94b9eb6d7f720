import marimo

app = marimo.App()


@app.cell
def _():
    import logging
    import subprocess
    import sys
    import threading
    return logging, subprocess, sys, threading


@app.cell
def _(sys):
    print("out")
    print("err", file=sys.stderr)
    print("no newline", end="")
    sys.stdout.write("é ✓ \U0001f600\n")
    return


@app.cell
def _(logging):
    logging.warning("careful")
    logging.getLogger("lib").error("wrong %s", 1)
    return


@app.cell
def _(subprocess):
    print(subprocess.run(["echo", "a child"], capture_output=True, text=True).stdout)
    return


@app.cell
def _():
    for _n in range(3):
        print(f"\r{_n} of 3", end="")
    print("\n\x1b[31mred\x1b[0m\tand\x07")
    return


@app.cell
def _(threading):
    _thread = threading.Thread(target=lambda: None)
    _thread.start()
    _thread.join()
    print("x" * 5000)
    return


@app.cell
def _():
    for _i in range(200):
        print(_i, "line")
    return


@app.cell
def _():
    import marimo as mo

    with mo.redirect_stdout():
        print("into the output")
    return (mo,)


@app.cell
def _(mo):
    with mo.capture_stdout() as captured:
        print("captured")
    captured.getvalue()
    return


@app.cell
def _():
    import traceback

    try:
        {}["k"]
    except KeyError:
        traceback.print_exc()
    return


@app.cell
def _():
    from pprint import pprint

    pprint({"k" * 30: list(range(30)), "n": {"a": (1,)}})
    return


if __name__ == "__main__":
    app.run()
