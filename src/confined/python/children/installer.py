"""
A child of the zygote that finds out which packages a notebook needs, or installs them into one folder with uv. Its
input is untrusted, and so is everything an index sends. It is confined like a conversion. To plan, it reads Python
and the system and nothing else. To install, it also writes that folder and the cache next to it, and connects to the
server's proxy, which leads to the index. Only wheels are installed, so no code of a package runs in a child that
reaches the index. A child that builds a wheel from sources (build_backend.py) runs such code: it writes the folder of
that build and nothing else, and has no network. One question per process, over its connection to the server
(connection.py):

    from us    {"op":"install-ready"}
    to us      {"step":"plan", "script", "workspace":[requirement], "index"}
               {"step":"install", "requirements", "folder", "built":[folder], "uv", "index", "proxy"}
               {"step":"source" | "environment" | "keep", …}      for a build: source_archives.py
               {"step":"unpack" | "build", …}                     for a build: build_backend.py
    from us    {"op":"install-progress","text"}                                          any number of times
               {"op":"install-done","ok":true, "requirements", "key", "notes", "workspace":[[name, requirement]]}
                                                                                         of a plan; none: nothing is missing
               {"op":"install-done","ok":true, "packages":[[name, version]], "replaces"} of an installation
               {"op":"install-done","ok":true, "lacking":[[name, [specifier]]], "error"} of packages without wheels
               {"op":"install-done","ok":false, "error"}
"""

import concurrent.futures
import glob
import hashlib
import importlib.machinery
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

from children import bare_process, build_backend, source_archives
from children.uv import Refused, Uv, WithoutWheels, write_lines
from children.uv_settings import LISTS, read_settings
from kernel import kernel_process
from script_block import find_block

LIMITS = {"DATA": 8 << 30, "CORE": 0, "FSIZE": 16 << 30, "NOFILE": 4096}
# uv's line for a distribution that it would install
PLANNED = re.compile(r"(?m)^ \+ (?P<name>\S+?)==(?P<version>\S+)")
MAX_REQUIREMENTS = 500
MAX_ERROR_CHARS = 4000
MAX_NAMED = 8
CONCURRENT_COMPILERS = 4


def run(order, confinement, link):
    """Answers one question on its socket and ends the process."""
    connection = bare_process.become(order, confinement, link, LIMITS)
    say = connection.say
    say(op="install-ready")
    kernel_process.begin_work()
    for _, body in connection.frames:
        question = msgspec.json.decode(body)
        try:
            if question["step"] in ("source", "unpack", "build") and confinement:
                build_backend.require_confinement(question, confinement.found)
            say(op="install-done", ok=True, **STEPS[question["step"]](question, say))
        except WithoutWheels as failure:
            say(op="install-done", ok=True, lacking=failure.lacking, error=str(failure)[:MAX_ERROR_CHARS])
        except Refused as refusal:
            say(op="install-done", ok=False, error=str(refusal)[:MAX_ERROR_CHARS])
        break
    os._exit(0)


def plan(question, _) -> dict:
    """Returns the missing requirements in a normal form, followed by the options of uv that the notebook asks for, and a key for
    exactly these on exactly this Python. The notebook's requirement of a package wins over its workspace's.
    """
    metadata = read_script(question["script"])
    have, notes, wanted, is_missing = find_installed(), [], {}, False
    if len(metadata["dependencies"]) > MAX_REQUIREMENTS:
        raise Refused(f"A notebook may require at most {MAX_REQUIREMENTS} packages.")
    own = [parse(text) for text in metadata["dependencies"]]
    options = read_settings(metadata["table"], {canonicalize_name(one.name) for one in own}, question["index"])
    shared = {}
    for one in map(parse, question["workspace"]):
        name = canonicalize_name(one.name)
        if name not in shared or applies(one):  # files of requirements have one line for each Python version or system
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
    for text in options:
        name, _, constraint = text.partition("=")
        if name in ("--constraint", "--overrides"):
            given = parse(constraint)
            version = have.get(canonicalize_name(given.name))
            is_missing |= version is not None and not given.specifier.contains(version, prereleases=True)
    python = metadata["requires-python"]
    if python and not python.contains(".".join(map(str, sys.version_info[:3]))):
        notes.append(f"The notebook asks for Python {python}; this server runs {sys.version.split()[0]}.")
    requirements = [*sorted(wanted), *options] if wanted and is_missing else []
    key = find_key(requirements, question["index"], have)
    return {"requirements": requirements, "key": key, "notes": notes, "workspace": workspace}


def find_key(requirements, index, have):
    facts = json.dumps([sys.version, sys.platform, index, sorted(have.items()), requirements])
    return hashlib.sha256(facts.encode()).hexdigest()[:40]


def read_script(text) -> dict:
    """Returns the requirements in the inline metadata of a script (PEP 723), and the whole table of these metadata."""
    found = find_block(text)
    if found is None:
        return {"dependencies": [], "requires-python": None, "table": {}}
    lines = (line[2:] if line.startswith("# ") else line[1:] for line in found.lines)
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
        return {"dependencies": dependencies, "requires-python": SpecifierSet(python) if python else None, "table": metadata}
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
    """Returns whether the requirement applies to this Python and system."""
    try:
        return requirement.marker is None or requirement.marker.evaluate()
    except (UndefinedComparison, UndefinedEnvironmentName) as error:
        raise Refused(f"The marker of {str(requirement)!r} cannot be evaluated: {error}") from None


def find_installed() -> dict:
    """Returns the version of every distribution of this Python, by its normal name."""
    found = importlib.metadata.distributions()
    return {canonicalize_name(one.metadata["Name"]): one.version for one in found if one.metadata["Name"]}


def find_limits(have) -> list[str]:
    """
    Returns the permitted versions of the distributions that marimo needs. If a set of packages has another version,
    its kernels forget the modules that the host has loaded (kernel_process.py), while marimo continues to use them.
    Two copies of a module are impossible when it is compiled, or when marimo compares its types with those of a
    notebook. Then only the version of this Python is permitted.
    """
    waiting, seen, limits = ["marimo"], set(), set()
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name in seen or name not in have:
            continue
        seen.add(name)
        for text in importlib.metadata.requires(name) or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(requirement.name)
                if requirement.specifier:
                    limits.add(f"{canonicalize_name(requirement.name)}{requirement.specifier}")
    compiled = find_compiled()
    fixed = [name for name in seen if name in ("marimo", "narwhals") or compiled & find_top_level(name)]
    return sorted(limits) + [f"{name}=={have[name]}" for name in sorted(fixed)]


def find_compiled() -> set[str]:
    """Returns the packages with a compiled module that this process, and so every kernel, has loaded."""
    compiled = tuple(importlib.machinery.EXTENSION_SUFFIXES)
    modules = list(sys.modules.items())
    return {name.partition(".")[0] for name, module in modules if (getattr(module, "__file__", None) or "").endswith(compiled)}


def find_top_level(distribution) -> set[str]:
    """Returns the names of the modules and packages that a distribution consists of."""
    files = importlib.metadata.files(distribution) or ()
    return {str(file).partition("/")[0].partition(".")[0] for file in files}


def install(question, say) -> dict:
    folder, have = question["folder"], find_installed()
    wanted, limits, locked = (os.path.join(folder, name) for name in ("wanted.txt", "limits.txt", "locked.txt"))
    requirements = [one for one in question["requirements"] if not one.startswith("--")]
    options = [tuple(one.split("=", 1)) for one in question["requirements"] if one.startswith("--")]
    listed = {name: [value for given, value in options if given == name] for name in LISTS.values()}
    write_lines(wanted, requirements)
    write_lines(limits, [*find_limits(have), *listed.pop("--constraint")])
    chosen = [f"{name}={value}" for name, value in options if name not in LISTS.values()]
    for name, lines in listed.items():
        if lines:
            file = os.path.join(folder, f"{name.strip('-')}.txt")
            write_lines(file, lines)
            chosen += [name, file]
    uv = Uv(question)
    for pages in glob.glob(os.path.join(uv.cache, "simple-*")):  # otherwise new versions in the index would be missing
        shutil.rmtree(pages, ignore_errors=True)
    say(op="install-progress", text=f"resolving {some_of(requirements)}")
    # Not `pip compile`: with `pip install` the versions of this Python stay wherever they fit, even
    # those that no index has.
    planned = uv.install("--dry-run", "--break-system-packages", "--requirement", wanted, "--constraint", limits, *chosen)
    packages = [(found["name"], found["version"]) for found in PLANNED.finditer(planned)]
    write_lines(locked, [f"{name}=={version}" for name, version in packages])
    site = os.path.join(folder, "site")
    os.mkdir(site)
    if packages:
        say(op="install-progress", text=f"installing {some_of([f'{name} {version}' for name, version in packages])}")
        args = ("--no-deps", "--requirement", locked, "--link-mode", "hardlink", "--target")
        fetched = os.path.join(folder, "fetched")
        uv.install(*args, fetched)  # into the cache
        shutil.rmtree(fetched)
        compile_archives(uv)
        uv.install(*args, site)
    replaces = any(canonicalize_name(name) in have for name, _ in packages)
    return {"packages": packages, "replaces": replaces}


def compile_archives(uv):
    """
    Compiles the packages in the cache that are not compiled yet, each by itself. All sets of packages share the
    result, so no package may add to the files of another one. If a whole set were compiled, a package in it could
    bring compiled modules for the sources of others.
    """
    archives, compiled = os.path.join(uv.cache, "archive-v0"), os.path.join(uv.cache, "compiled")
    os.makedirs(compiled, exist_ok=True)

    def compile_one(name):
        command = [sys.executable, "-I", "-m", "compileall", "-q", os.path.join(archives, name)]
        # Files for other versions of Python do not compile, which does not matter to programs that
        # do not import them.
        subprocess.run(command, env=uv.env, capture_output=True, stdin=subprocess.DEVNULL)
        write_lines(os.path.join(compiled, name), [])

    with concurrent.futures.ThreadPoolExecutor(CONCURRENT_COMPILERS) as pool:
        list(pool.map(compile_one, set(os.listdir(archives)) - set(os.listdir(compiled))))


def some_of(names) -> str:
    more = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


STEPS = {
    "plan": plan,
    "install": install,
    "source": source_archives.fetch,
    "environment": source_archives.make_environment,
    "keep": source_archives.keep,
    "unpack": build_backend.unpack,
    "build": build_backend.build,
}
