"""
The table [tool.uv] in the script metadata of a notebook: the sources and versions of its packages. A setting that
affects which packages are installed is either obeyed, or refused with its name. If a source were ignored, a
stranger's package of the same name would be installed from the index.
"""

from packaging.markers import InvalidMarker, Marker, UndefinedComparison, UndefinedEnvironmentName
from packaging.utils import canonicalize_name

from children.uv import Refused

PYPI = "https://pypi.org/simple"  # the index of this server takes its place
# settings that are options of `uv pip install`, with the values that they may have; None: any text
OPTIONS = {
    "exclude-newer": None,
    "resolution": ("highest", "lowest", "lowest-direct"),
    "prerelease": ("disallow", "allow", "if-necessary", "explicit", "if-necessary-or-explicit"),
}
# settings that are lists of requirements, with the option that takes a file of them
LISTS = {"constraint-dependencies": "--constraint", "override-dependencies": "--overrides", "exclude-dependencies": "--excludes"}
INDEXES = ("index", "index-url", "extra-index-url")
# settings that change neither which packages are installed nor from where, or that concern projects and not scripts
WITHOUT_EFFECT = {
    "cache-dir", "cache-keys", "check-url", "compile-bytecode", "concurrent-builds", "concurrent-downloads", "concurrent-installs",
    "conflicts", "build-backend", "default-groups", "dependency-groups", "dev-dependencies", "environments", "fork-strategy", "index-strategy",
    "keyring-provider", "link-mode", "managed", "native-tls", "no-cache", "no-progress", "package", "preview", "preview-features",
    "publish-url", "pypy-install-mirror", "python-downloads", "python-install-mirror", "python-preference", "reinstall",
    "reinstall-package", "required-environments", "required-version", "system-certs", "trusted-publishing", "upgrade", "upgrade-package",
    "workspace",
}  # fmt: skip


def read_settings(metadata, names, index) -> list[str]:
    """
    Returns the options of uv, as `--name=value`, that a notebook's metadata ask for. `names`: the packages that the
    notebook requires, in normal form. If it requires none, no setting has an effect. Raises Refused for a setting
    that cannot be obeyed.
    """
    tool = metadata.get("tool", {})
    table = tool.get("uv", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise Refused("[tool.uv] in the script metadata of the notebook must be a table.")
    options = []
    if not names:
        return options
    named = refuse_other_indexes(table, index)
    for name, value in table.items():
        if name in WITHOUT_EFFECT or name in ("sources", "no-sources", *INDEXES) or value in (False, [], {}):
            continue
        if name in OPTIONS:
            if not isinstance(value, str) or not value.isprintable() or value not in (OPTIONS[name] or (value,)):
                raise Refused(f"{name} in [tool.uv] of the notebook cannot be {value!r}.")
            options.append(f"--{name}={value}")
        elif name in LISTS:
            if not isinstance(value, list) or not all(isinstance(one, str) and one.isprintable() for one in value):
                raise Refused(f"{name} in [tool.uv] of the notebook must be a list of texts.")
            options += [f"{LISTS[name]}={one}" for one in value]
        else:
            raise Refused(f"The server cannot obey {name} in [tool.uv] of the notebook, so it installs none of its packages.")
    if table.get("no-sources") is not True:
        refuse_sources(table.get("sources", {}), names, named)
    return options


def refuse_other_indexes(table, index) -> set[str]:
    """Returns the names of the indexes that are this server's own. Raises Refused for another one."""
    given = table.get("index", [])
    tables = given if isinstance(given, list) else [given]
    extra = table.get("extra-index-url", [])
    tables = [*tables, table.get("index-url"), *(extra if isinstance(extra, list) else [extra])]
    named = set()
    for one in tables:
        url = one.get("url") if isinstance(one, dict) else one
        is_own = isinstance(url, str) and url.rstrip("/") in (index.rstrip("/"), PYPI)
        if is_own and isinstance(one, dict) and isinstance(one.get("name"), str):
            named.add(one["name"])
        # an explicit index only counts for the packages whose sources name it
        if url is not None and not is_own and not (isinstance(one, dict) and one.get("explicit") is True):
            raise Refused(f"[tool.uv] of the notebook names the index {url}. Packages come from the index of this server only.")
    return named


def refuse_sources(sources, names, indexes):
    """Raises Refused if a required package has a source that is not this server's index."""
    if not isinstance(sources, dict):
        raise Refused("[tool.uv.sources] of the notebook must be a table.")
    for name, given in sources.items():
        if canonicalize_name(name) not in names:
            continue
        for source in given if isinstance(given, list) else [given]:
            if not isinstance(source, dict):
                raise Refused(f"The source of {name} in [tool.uv.sources] of the notebook must be a table.")
            if not applies(name, source) or source.get("index") in indexes:
                continue
            kind = next((one for one in ("index", "path", "git", "url", "workspace") if one in source), None)
            where = f" ({kind} = {source[kind]!r})" if kind else ""
            raise Refused(
                f"[tool.uv.sources] of the notebook gives {name} a source of its own{where}. Packages come from the index of this server "
                f"only, so {name} is not installed: another package of that name would be."
            )


def applies(name, source) -> bool:
    """Returns whether a source applies to this Python and system."""
    try:
        return "marker" not in source or Marker(str(source["marker"])).evaluate()
    except (InvalidMarker, UndefinedComparison, UndefinedEnvironmentName) as error:
        raise Refused(f"The marker of the source of {name} cannot be evaluated: {error}") from None
