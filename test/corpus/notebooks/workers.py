import marimo

app = marimo.App()


@app.cell
def _():
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
    from math import sqrt
    return ProcessPoolExecutor, ThreadPoolExecutor, multiprocessing, sqrt


@app.cell
def _(ThreadPoolExecutor, sqrt):
    with ThreadPoolExecutor(2) as _pool:
        threads = list(_pool.map(sqrt, [1, 4, 9]))
    threads
    return


@app.cell
def _(ProcessPoolExecutor, multiprocessing, sqrt):
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as _pool:
        processes = list(_pool.map(sqrt, [16, 25]))
    processes
    return


@app.cell
def _(multiprocessing, sqrt):
    with multiprocessing.get_context("fork").Pool(1) as _pool:
        forked = _pool.map(sqrt, [36])
    forked
    return


if __name__ == "__main__":
    app.run()
