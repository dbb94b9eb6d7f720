"""
Forms of a chart for front ends that cannot draw Vega: a picture if vl-convert-python is installed, and otherwise HTML that
loads Vega from a public CDN.
"""

import re
import secrets
import sys
from base64 import b64encode
from importlib import import_module
from typing import Any

import msgspec

_MIMETYPE = re.compile(r"application/vnd\.(vega|vegalite)\.v(\d)[\w.]*\+json")
# The scripts for each major version of Vega and Vega-Lite, in the order in which they need each other.
_SCRIPTS = {
    "5": {"vega": "5.33.1", "vega-lite": "5.23.0", "vega-embed": "6.29.0"},
    "6": {"vega": "6.2.0", "vega-lite": "6.4.1", "vega-embed": "7.1.0"},
}
# A page without a network, or one that runs no scripts, keeps the sentence. A notebook page with RequireJS gets the scripts through
# it, because they make no global names there. Pages with charts of both versions load one version after the other.
_PAGE = """\
<div id="__ID__"><p>This chart needs scripts from cdn.jsdelivr.net, which this page has not loaded.</p></div>
<script>
(async () => {
  const { mode, scripts, spec } = __SETTINGS__;
  const before = document.currentScript?.previousElementSibling; // an output may be shown twice
  const place = before?.id === "__ID__" ? before : document.getElementById("__ID__"), key = JSON.stringify(scripts);
  const address = ([name, version]) => `https://cdn.jsdelivr.net/npm/${name}@${version}/build/${name}.min`;
  const load = (one) => new Promise((resolve, reject) => {
    const script = document.createElement("script");
    Object.assign(script, { src: address(one) + ".js", onload: resolve, onerror: () => { script.remove(); reject(); } });
    document.head.append(script);
  });
  const require = async () => {
    const context = requirejs.config({ context: key, paths: Object.fromEntries(scripts.map((one) => [one[0], address(one)])) });
    return new Promise((resolve, reject) => context(["vega-embed"], resolve, reject));
  };
  const inTurn = async () => {
    for (const one of scripts) await load(one);
    return window.vegaEmbed;
  };
  const charts = (window.troupeCharts ??= { last: Promise.resolve(), embeds: {} });
  try {
    charts.embeds[key] ??= charts.last = charts.last.catch(() => {}).then(window.define?.amd ? require : inTurn);
    const embed = await charts.embeds[key];
    await (embed.default ?? embed)(place, spec, { mode });
  } catch (error) {
    if (error === undefined || error.requireType) delete charts.embeds[key]; // the next chart tries again
    else place.textContent = `This chart could not be drawn: ${error.message}`;
  }
})();
</script>
"""


def chart_forms(mimetype: str, spec: Any) -> dict[str, str]:
    """
    Returns forms of a chart in addition to its specification, by their media types. There are none for a media type that is not of Vega,
    and none in marimo, which draws charts without them.
    """
    match = _MIMETYPE.fullmatch(mimetype)
    if match is None or _is_in_marimo():
        return {}
    kind, version = match.groups()
    picture = _picture(kind, spec)
    if picture is not None:
        return {"image/png": b64encode(picture).decode()}
    scripts = _SCRIPTS.get(version)
    return {} if scripts is None else {"text/html": _page(kind, scripts, spec)}


def _picture(kind: str, spec: Any) -> bytes | None:
    """Returns the chart as PNG; None without vl-convert-python, and for a chart that it cannot draw. It loads no data from elsewhere."""
    try:
        converter = import_module("vl_convert")
        draw = converter.vega_to_png if kind == "vega" else converter.vegalite_to_png
        picture: bytes = draw(spec, allowed_base_urls=["data:"])  # marimo's charts have their data in such URLs
    except Exception:  # of any kind: the converter reports errors of JavaScript
        return None
    return picture


def _page(kind: str, scripts: dict[str, str], spec: Any) -> str:
    mode = "vega" if kind == "vega" else "vega-lite"
    settings = msgspec.json.encode({"mode": mode, "scripts": list(scripts.items()), "spec": spec}).decode()
    # Within a script element, only these characters could end the element or begin a comment.
    for char in "<>&\u2028\u2029":
        settings = settings.replace(char, f"\\u{ord(char):04x}")
    return _PAGE.replace("__ID__", f"troupe-chart-{secrets.token_hex(8)}").replace("__SETTINGS__", settings)


def _is_in_marimo() -> bool:
    marimo = sys.modules.get("marimo")
    return marimo is not None and bool(marimo.running_in_notebook())
