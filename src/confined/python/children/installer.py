"""A child of the zygote that finds out which packages a notebook needs, or installs them into one folder with uv. Its
input is untrusted, and so is everything an index sends. It is confined like a conversion: to plan, it reads Python and
the system and nothing else; to install, it also writes that folder, and reaches the server's proxy, which leads to the
index. Only wheels are installed, so nothing that comes from the index runs here. One question per process, over its
connection to the server (connection.py):

    from us    {"op":"install-ready"}
    to us      {"step":"plan", "script", "workspace":[requirement], "index"}   or   {"step":"install", "requirements", "folder", "uv", "index", "proxy"}
    from us    {"op":"install-progress","text"}                                          any number of times
               {"op":"install-done","ok":true, "requirements", "key", "notes", "workspace":[[name, requirement]]}
                                                                                         of a plan; none: nothing is missing
               {"op":"install-done","ok":true, "packages":[[name, version]], "replaces"} of an installation
               {"op":"install-done","ok":false, "error"}
"""

import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib

import msgspec
from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from children import bare_process
from children.uv_failure import explain
from kernel import kernel_process

LIMITS = {"DATA": 8 << 30, "CORE": 0, "FSIZE": 16 << 30, "NOFILE": 4096}
SCRIPT = re.compile(r"(?m)^# /// script$\s(?P<content>(^#(| .*)$\s)+)^# ///$")
MAX_REQUIREMENTS = 500
MAX_ERROR_CHARS = 4000
MAX_NAMED = 8
CONCURRENT_INSTALLS = "8"  # otherwise one for each processor, with a Python each to compile
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"


class Refused(Exception):
    """Raised when requirements cannot be met. The message is for people."""


def run(order, confinement, link):
    """Answers one question on its socket and ends the process."""
    connection = bare_process.become(order, confinement, link, LIMITS)
    say = connection.say
    say(op="install-ready")
    kernel_process.begin_work()
    for _, body in connection.frames:
        question = msgspec.json.decode(body)
        try:
            answer = plan(question) if question["step"] == "plan" else install(question, say)
            say(op="install-done", ok=True, **answer)
        except Refused as refusal:
            say(op="install-done", ok=False, error=str(refusal)[:MAX_ERROR_CHARS])
        break
    os._exit(0)


def plan(question) -> dict:
    """Returns the missing requirements in a normal form, and a key for exactly these on exactly this Python. The
    notebook's requirement of a package wins over its workspace's.
    """
    metadata = read_script(question["script"])
    have, notes, wanted, is_missing = find_installed(), [], {}, False
    if len(metadata["dependencies"]) > MAX_REQUIREMENTS:
        raise Refused(f"A notebook may require at most {MAX_REQUIREMENTS} packages.")
    own = [parse(text) for text in metadata["dependencies"]]
    shared = {}
    for one in map(parse, question["workspace"]):
        name = canonicalize_name(one.name)
        if name not in shared or applies(one):  # files of requirements have one line for each Python or system
            shared[name] = one
    workspace = [[name, str(one)] for name, one in shared.items()]
    if "marimo" in shared:
        raise Refused("marimo is a part of the server: its version cannot be chosen.")
    for one in own:
        shared.pop(canonicalize_name(one.name), None)
    for requirement in [*own, *shared.values()]:
        name = canonicalize_name(requirement.name)
        if not applies(requirement):
            continue
        if name == "marimo":
            if not requirement.specifier.contains(have["marimo"], prereleases=True):
                notes.append(f"The notebook asks for {requirement}; this server runs marimo {have['marimo']}.")
            continue
        requirement.marker = None
        wanted[f"{name}{str(requirement)[len(requirement.name):]}"] = True
        is_missing |= bool(requirement.extras) or not requirement.specifier.contains(have.get(name, "0.dev0"), prereleases=True)
        is_missing |= name not in have
    python = metadata["requires-python"]
    if python and not python.contains(".".join(map(str, sys.version_info[:3]))):
        notes.append(f"The notebook asks for Python {python}; this server runs {sys.version.split()[0]}.")
    requirements = sorted(wanted) if is_missing else []
    key = find_key(requirements, question["index"], have)
    return {"requirements": requirements, "key": key, "notes": notes, "workspace": workspace}


def find_key(requirements, index, have):
    facts = json.dumps([sys.version, sys.platform, index, sorted(have.items()), requirements])
    return hashlib.sha256(facts.encode()).hexdigest()[:40]


def read_script(text) -> dict:
    """Returns the requirements in the inline metadata of a script (PEP 723)."""
    found = SCRIPT.search(text + "\n")
    if found is None:
        return {"dependencies": [], "requires-python": None}
    lines = (line[2:] if line.startswith("# ") else line[1:] for line in found["content"].splitlines())
    try:
        metadata = tomllib.loads("\n".join(lines))
    except tomllib.TOMLDecodeError as error:
        raise Refused(f"The script metadata of the notebook are not TOML: {error}.") from None
    except RecursionError:
        raise Refused("The script metadata of the notebook are nested too deeply.") from None
    dependencies, python = metadata.get("dependencies", []), metadata.get("requires-python")
    if not isinstance(dependencies, list) or not all(isinstance(one, str) for one in dependencies):
        raise Refused("The dependencies in the script metadata of the notebook must be a list of texts.")
    if not isinstance(python, str | None):
        raise Refused("requires-python of the notebook must be a text.")
    try:
        return {"dependencies": dependencies, "requires-python": SpecifierSet(python) if python else None}
    except InvalidSpecifier:
        raise Refused(f"requires-python of the notebook is not a version specifier: {python!r}.") from None


def parse(text) -> Requirement:
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        raise Refused(f"{text!r} is not a requirement: {error}") from None
    if requirement.url:
        raise Refused(f"{text!r} names an address. Packages come from the index of this server only.")
    return requirement


def applies(requirement) -> bool:
    """Returns whether the requirement is one on this Python and system."""
    try:
        return requirement.marker is None or requirement.marker.evaluate()
    except (UndefinedComparison, UndefinedEnvironmentName) as error:
        raise Refused(f"The marker of {str(requirement)!r} cannot be evaluated: {error}") from None


def find_installed() -> dict:
    """Returns the version of every distribution of this Python, by its normal name."""
    found = importlib.metadata.distributions()
    return {canonicalize_name(one.metadata["Name"]): one.version for one in found if one.metadata["Name"]}


def find_pinned(have) -> list[str]:
    """Returns the distributions that marimo needs: they are loaded in every kernel, so no other version can be."""
    waiting, seen = ["marimo"], set()
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name in seen or name not in have:
            continue
        seen.add(name)
        for text in importlib.metadata.requires(name) or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(requirement.name)
    return [f"{name}=={have[name]}" for name in sorted(seen)]


def install(question, say) -> dict:
    folder, have = question["folder"], find_installed()
    wanted, pinned, locked = (os.path.join(folder, name) for name in ("wanted.txt", "pinned.txt", "locked.txt"))
    write_lines(wanted, question["requirements"])
    write_lines(pinned, find_pinned(have))
    # uv prefers the locked versions: the versions of this Python, as far as they fit
    write_lines(locked, [f"{name}=={version}" for name, version in sorted(have.items())])
    uv = Uv(question)
    say(op="install-progress", text=f"resolving {some_of(question['requirements'])}")
    uv.run("pip", "compile", wanted, "--constraint", pinned, "--output-file", locked, "--no-header", "--no-annotate")
    resolved = [line.split("==") for line in read_lines(locked)]
    packages = [(name, version) for name, version in resolved if have.get(canonicalize_name(name)) != version]
    write_lines(locked, [f"{name}=={version}" for name, version in packages])
    site = os.path.join(folder, "site")
    os.mkdir(site)
    if packages:
        say(op="install-progress", text=f"installing {some_of([f'{name} {version}' for name, version in packages])}")
        uv.run("pip", "install", "--no-deps", "--requirement", locked, "--target", site, "--compile-bytecode")
    shutil.rmtree(uv.cache, ignore_errors=True)
    replaces = any(canonicalize_name(name) in have for name, _ in packages)
    return {"packages": packages, "replaces": replaces}


def some_of(names) -> str:
    more = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


class Uv:
    """uv with everything switched off that would run code of a package, or reach anything but the index."""

    def __init__(self, question):
        folder, proxy = question["folder"], question["proxy"]
        self.path = question["uv"]
        self.cache = os.path.join(folder, "cache")
        self.env = {
            "PATH": "/usr/bin:/bin",
            "HOME": folder,
            "TMPDIR": folder,
            "LANG": "C.UTF-8",
            "UV_CACHE_DIR": self.cache,
            "UV_NO_CONFIG": "1",
            "UV_NO_PROGRESS": "1",
            "UV_PYTHON_DOWNLOADS": "never",
            "UV_DEFAULT_INDEX": question["index"],
            "UV_HTTP_TIMEOUT": "60",
            "UV_HTTP_RETRIES": "1",
            "UV_CONCURRENT_INSTALLS": CONCURRENT_INSTALLS,
            **{name: proxy for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy")},
            **({"SSL_CERT_FILE": CERTIFICATES} if os.path.exists(CERTIFICATES) else {}),
        }

    def run(self, *args):
        command = [self.path, *args, "--python", sys.executable, "--only-binary", ":all:", "--quiet", "--color", "never"]
        done = subprocess.run(command, env=self.env, capture_output=True, stdin=subprocess.DEVNULL, cwd=self.env["HOME"])
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").replace(f"{self.env['HOME']}/", "")
            raise Refused(explain(said, done.returncode))


def write_lines(path, lines):
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)


def read_lines(path) -> list[str]:
    with open(path, encoding="utf-8") as file:
        return [line.split(" ;")[0].strip() for line in file if "==" in line and not line.startswith("#")]
