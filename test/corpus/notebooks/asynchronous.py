import marimo

app = marimo.App()


@app.cell
async def _():
    import asyncio

    await asyncio.sleep(0)
    "awaited"
    return (asyncio,)


@app.cell
async def _(asyncio):
    turns = [asyncio.Event() for _ in range(5)]
    turns[1].set()

    async def work(n):
        await turns[n].wait()
        print("done", n)
        turns[n + 1].set()
        return n

    await asyncio.gather(*(work(n) for n in (3, 1, 2)))
    return turns, work


@app.cell
def _(work):
    _coroutine = work(1)
    _coroutine.close()
    type(_coroutine).__name__
    return


@app.cell
async def _(asyncio):
    async with asyncio.timeout(0.01):
        await asyncio.sleep(10)
    return


@app.cell
async def _():
    async def numbers():
        for n in range(3):
            yield n

    [n async for n in numbers()]
    return


if __name__ == "__main__":
    app.run()
