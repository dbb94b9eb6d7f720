import marimo

app = marimo.App()


@app.cell
def _():
    class Html:
        def _repr_html_(self):
            return "<b>bold</b>"

    class Markdown:
        def _repr_markdown_(self):
            return "# *marked*"

    class Latex:
        def _repr_latex_(self):
            return "$x^2$"

    class Json:
        def _repr_json_(self):
            return {"k": [1]}

    class Svg:
        def _repr_svg_(self):
            return "<svg xmlns='http://www.w3.org/2000/svg' width='3' height='3'/>"

    class Mime:
        def _mime_(self):
            return "text/csv", "a,b\n1,2\n"

    class Bundle:
        def _repr_mimebundle_(self, include=None, exclude=None):
            return {"text/plain": "plain", "text/html": "<i>html</i>"}

    class Raises:
        def _repr_html_(self):
            raise RuntimeError("no display")

        def __repr__(self):
            return "<Raises>"

    class Display:
        def _display_(self):
            return "another value"
    return Bundle, Display, Html, Json, Latex, Markdown, Mime, Raises, Svg


@app.cell
def _(Html):
    Html()
    return


@app.cell
def _(Markdown):
    Markdown()
    return


@app.cell
def _(Latex):
    Latex()
    return


@app.cell
def _(Json):
    Json()
    return


@app.cell
def _(Svg):
    Svg()
    return


@app.cell
def _(Mime):
    Mime()
    return


@app.cell
def _(Bundle):
    Bundle()
    return


@app.cell
def _(Raises):
    Raises()
    return


@app.cell
def _(Display):
    Display()
    return


@app.cell
def _(Html, Mime):
    [Html(), {"k": Mime()}]
    return


@app.cell
def _():
    class Loud:
        def __repr__(self):
            print("printed by repr")
            return "Loud"

    Loud()
    return


if __name__ == "__main__":
    app.run()
