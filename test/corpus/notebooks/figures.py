import marimo

app = marimo.App()


@app.cell
def _():
    import matplotlib.pyplot as plt
    import numpy as np
    return np, plt


@app.cell
def _(np, plt):
    x = np.linspace(0, 2 * np.pi, 200)
    plt.plot(x, np.sin(x))
    plt.title("sine")
    plt.gca()
    return (x,)


@app.cell
def _(np, plt, x):
    for n in (1, 2):
        print("figure", n)
        plt.figure(figsize=(3, 2))
        plt.plot(x, np.cos(n * x))
        plt.show()
    print("shown")
    return


@app.cell
def _(np, plt):
    figure, axes = plt.subplots(2, 2, figsize=(4, 4))
    axes[0, 0].imshow(np.arange(64).reshape(8, 8))
    axes[1, 1].bar(["a", "b"], [1, 2])
    figure
    return (axes,)


@app.cell
def _(axes):
    axes
    return


@app.cell
def _(plt, x):
    plt.hist(x, bins=5)
    return


@app.cell
def _(plt):
    plt.figure()
    plt.plot([1, 2], [1, 2, 3])
    return


@app.cell
def _(np):
    from PIL import Image

    Image.fromarray((np.arange(400).reshape(20, 20) % 255).astype("uint8"))
    return


if __name__ == "__main__":
    app.run()
