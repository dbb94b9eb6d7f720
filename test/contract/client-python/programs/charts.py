"""
Shows charts as Jupyter would. Prints their MIME bundles: of a chart of a code call, of a large chart of a run, of one without
script elements that end early, with a converter that draws, with one that fails, and within marimo.
"""

import json
import sys
from types import ModuleType
from typing import Any

from troupe_client import CodeOutcome, Troupe
from troupe_client.models import CodeOutput, CodeResult

SMALL = "import altair as alt, pandas as pd\nalt.Chart(pd.DataFrame({'x': [1, 2], 'y': [3, 4]})).mark_bar().encode(x='x', y='y')"
LARGE = SMALL.replace("[1, 2]", "range(9000)").replace("[3, 4]", "range(9000)").replace("alt.Chart", "alt.data_transformers.disable_max_rows(); alt.Chart")


def bundle_of(mimetype: str, spec: object) -> dict[str, Any]:
    output = CodeOutput(mimetype=mimetype, data=json.dumps(spec))
    result = CodeResult(success=True, output=output, stdout="", stderr="", media=[], errors=[])
    return CodeOutcome(result)._repr_mimebundle_()


def module(name: str, **members: object) -> None:
    sys.modules[name] = made = ModuleType(name)
    made.__dict__.update(members)


def converted(spec: Any, allowed_base_urls: list[str]) -> bytes:
    if spec["mark"] == "wrong":
        raise ValueError("It is no chart.")
    return json.dumps([spec, allowed_base_urls]).encode()


HOSTILE = {"mark": "bar", "title": "</script><script>document.title = 'taken'</script><!-- & \u2028"}
with Troupe() as troupe, troupe.sandbox() as box, troupe.open(troupe.notebooks.create(cells={"chart": LARGE})) as session:
    bundles = {
        "code": box.code(SMALL)._repr_mimebundle_(),
        "run": session.run().cells["chart"]._repr_mimebundle_(),
        "older": bundle_of("application/vnd.vegalite.v5+json", HOSTILE),
        "vega": bundle_of("application/vnd.vega.v6.0.0+json", {"marks": []}),
        "plotly": bundle_of("application/vnd.plotly.v1+json", {"data": []}),
    }
module("vl_convert", vegalite_to_png=converted)
bundles["drawn"] = bundle_of("application/vnd.vegalite.v6+json", {"mark": "bar"})
bundles["undrawn"] = bundle_of("application/vnd.vegalite.v6+json", {"mark": "wrong"})
module("marimo", running_in_notebook=lambda: True)
bundles["marimo"] = bundle_of("application/vnd.vegalite.v6+json", {"mark": "bar"})
print(json.dumps(bundles))
