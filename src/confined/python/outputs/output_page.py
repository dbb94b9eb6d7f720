"""Extracts the words from HTML that a notebook shows, and from marimo's own elements in it."""

import html
import json
import re
from html.parser import HTMLParser

MAX_PAGE_CHARS = 50_000
MAX_UNCLOSED = 20  # the parser looks for the end of each tag, so the time grows with the square of the number of unfinished tags
MAX_NESTED_PAGES = 5
MAX_TABLE_ROWS = 20
LEFT_OUT = {"script", "style", "head", "template", "noscript", "colgroup", "svg"}
VOID = set("area base br col embed hr img input link meta source track wbr".split())
BLOCKS = set(
    """address article aside blockquote dd details div dl dt fieldset figure footer form h1 h2 h3 h4 h5 h6 header hr li
    main nav ol p pre section summary table tr ul marimo-accordion marimo-tabs marimo-callout-output marimo-table
    marimo-mermaid marimo-stat""".split()
)
TEX = re.compile(r"\|\|[()\[\]]")


def page_text(page, nested=0) -> str:
    """Returns the text of a page, or of the beginning of a very long page."""
    page = page[:MAX_PAGE_CHARS]
    if page.count("<") - page.count(">") > MAX_UNCLOSED:
        return html.unescape(re.sub(r"<[^<>]*>", "", page))
    words = _Words(nested)
    words.feed(page)
    words.close()
    return words.text()


class _Words(HTMLParser):
    def __init__(self, nested):
        super().__init__()
        self._nested = nested
        self._parts = []
        self._open = []  # names of the elements that the parser is in
        self._silent = 0  # depth of the outermost element that is left out; 0: none
        self._pre = 0
        self._sections = []  # (depth of their container, labels that are still to come)

    def text(self):
        lines = [line.rstrip() for line in "".join(self._parts).split("\n")]
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self._open.append(tag)
        if self._silent:
            return
        if tag in LEFT_OUT:
            self._silent = len(self._open)
            if tag == "svg":
                self._say("[drawing]")
            return
        if tag in BLOCKS or tag == "br" or (dict(attrs).get("class") or "").startswith(("paragraph", "markdown")):
            self._line()
        if tag == "pre":
            self._pre += 1
        elif tag == "li":
            self._say("- ")
        elif tag in ("td", "th"):
            self._say("" if self._at_line_start() else "\t")
        elif tag == "div" and self._sections and self._sections[-1][0] == len(self._open) - 1:
            self._begin_section()
        elif tag == "tr" or tag in BLOCKS and not tag.startswith("marimo-"):
            pass
        else:
            self._element(tag, dict(attrs))

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        if tag not in self._open:
            return
        while self._open:
            name = self._open.pop()
            if self._silent > len(self._open):
                self._silent = 0
            if self._sections and self._sections[-1][0] > len(self._open):
                self._sections.pop()
            if name == "pre":
                self._pre -= 1
            if name == tag:
                break
        if tag in BLOCKS and not self._silent:
            self._line()

    def handle_data(self, data):
        if self._silent:
            return
        if self._open and self._open[-1] == "marimo-tex":
            self._say(TEX.sub("$", data))
        elif self._pre:
            self._say(data)
        else:
            words = re.sub(r"[ \t\r\n\f]+", " ", data)
            self._say(words.lstrip() if self._at_line_start() else words)

    def _element(self, tag, attributes):
        if tag == "img":
            self._say(f"[image {attributes['alt']}]" if attributes.get("alt") else "[image]")
        elif tag in ("audio", "video", "iframe", "embed", "object"):
            self._say(f"[{attributes.get('title') or ('page' if tag == 'iframe' else tag)}]")
        elif tag in ("marimo-accordion", "marimo-tabs"):
            labels = _value(attributes, "labels") or _value(attributes, "tabs")
            self._sections.append((len(self._open), list(labels) if isinstance(labels, list) else []))
        elif tag.startswith("marimo-"):
            self._say(self._marimo_text(tag, attributes))

    def _begin_section(self):
        _, labels = self._sections[-1]
        if labels:
            self._say(f"{self._page(labels.pop(0))}:")
            self._line()

    def _marimo_text(self, tag, attributes):
        if isinstance(page := _value(attributes, "html"), str):
            return self._page(page)
        if tag == "marimo-stat":
            label, value, caption = (self._page(_value(attributes, name)) for name in ("label", "value", "caption"))
            return f"{label}: {value}".removeprefix(": ") + (f" ({caption})" if caption else "")
        if tag == "marimo-mermaid":
            return str(_value(attributes, "diagram") or "")
        if tag == "marimo-json-output":
            return json.dumps(_value(attributes, "json-data"), ensure_ascii=False)
        if tag == "marimo-progress":
            words = " ".join(filter(None, (self._page(_value(attributes, name)) for name in ("title", "subtitle"))))
            progress, total = _value(attributes, "progress"), _value(attributes, "total")
            return f"[{words or 'progress'}" + ("]" if progress is True else f": {progress}/{total}]")
        if tag == "marimo-download":
            return f"[download {_value(attributes, 'filename') or self._page(_value(attributes, 'label')) or ''}".rstrip() + "]"
        if tag == "marimo-plotly":
            title = _within(_value(attributes, "figure"), "layout", "title", "text")
            return f"[chart {self._page(title)}]" if title else "[chart]"
        if tag == "marimo-table":
            return _table_text(attributes)
        if tag in ("marimo-vega", "marimo-matplotlib", "marimo-mpl-interactive", "marimo-panel", "marimo-anywidget"):
            return f"[{tag.removeprefix('marimo-')}]"
        if "data-initial-value" not in attributes or tag in ("marimo-form", "marimo-dict"):
            return ""
        label = self._page(_value(attributes, "label")) or tag.removeprefix("marimo-")
        return f"[{label}: {json.dumps(_value(attributes, 'initial-value'), ensure_ascii=False)}]"

    def _page(self, page):
        if page is None:
            return ""
        return page_text(str(page), self._nested + 1) if self._nested < MAX_NESTED_PAGES else ""

    def _say(self, text):
        if text:
            self._parts.append(text)

    def _line(self):
        if self._parts and not self._at_line_start():
            self._parts.append("\n")

    def _at_line_start(self):
        return not self._parts or self._parts[-1].endswith("\n")


def _value(attributes, name):
    """Returns the value in an attribute that marimo has set, which is JSON."""
    try:
        return json.loads(attributes.get(f"data-{name}") or "null")
    except ValueError:
        return None


def _within(value, *keys):
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _table_text(attributes):
    """Returns those of a table's first rows that are in the page."""
    rows = _value(attributes, "data")
    try:
        rows = json.loads(rows) if isinstance(rows, str) else rows
    except ValueError:  # the data are an address, not JSON
        rows = None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return f"[table of {_value(attributes, 'total-rows')} rows]"
    names = [name for name in (rows[0] if rows else {}) if name != "_marimo_row_id"]
    lines = ["\t".join(names)]
    lines += ["\t".join(_cell(row.get(name)) for name in names) for row in rows[:MAX_TABLE_ROWS]]
    total = _value(attributes, "total-rows")
    if isinstance(total, int) and total > len(lines) - 1:
        lines.append(f"… {total - len(lines) + 1} more rows")
    return "\n".join(lines)


def _cell(value):
    if isinstance(value, dict) and len(value) == 1 and "$bigint" in value:
        return str(value["$bigint"])
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
