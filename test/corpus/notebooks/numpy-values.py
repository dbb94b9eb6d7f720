import marimo

app = marimo.App()


@app.cell
def _():
    import warnings

    import numpy as np
    return np, warnings


@app.cell
def _(np):
    generator = np.random.default_rng(7)
    sample = generator.normal(size=(4, 3))
    sample
    return (sample,)


@app.cell
def _(np, sample):
    np.linalg.svd(sample, compute_uv=False).round(10)
    return


@app.cell
def _(np):
    np.arange(100_000)
    return


@app.cell
def _(np):
    np.float64(0.1) + np.float64(0.2), np.int8(5), np.bool_(True), np.nan, np.datetime64("2026-03-01")
    return


@app.cell
def _(np):
    np.array([1, 2]) / np.array([0, 1])
    return


@app.cell
def _(np):
    np.array([1, 2]) @ np.array([1, 2, 3])
    return


@app.cell
def _(warnings):
    warnings.warn("this is old", DeprecationWarning, stacklevel=1)
    warnings.warn("look out", stacklevel=1)
    return


if __name__ == "__main__":
    app.run()
