"""The steps of a build that run code of a package: its archive is unpacked, and its build backend
(PEP 517) makes a wheel. The process writes only the folder of its build and has no network, so the
code can spoil nothing but its own wheel.
"""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sysconfig
import tarfile
import tomllib
import zipfile

from children.uv import Refused

MAX_PROJECT_BYTES = 1 << 20
MAX_ANSWER_BYTES = 1 << 20
MAX_FILE_BYTES = 2 << 30
MAX_REQUIREMENTS = 100
MAX_REQUIREMENT_CHARS = 300
TAIL_BYTES = 16 << 10
SHOWN_LINES, SHOWN_CHARS = 8, 800
COMPILERS = ("cc", "gcc", "clang")
COMPILER = re.compile(r"\b(?:cc|gcc|clang|compiler|c\+\+|g\+\+)(?![\w.])", re.IGNORECASE)
# The build system of projects that name none (PEP 518).
LEGACY = {"requires": ["setuptools>=40.8.0"], "build-backend": "setuptools.build_meta:__legacy__"}

# Runs in the Python of the environment. Its arguments: a JSON object.
HOOKS = """
import importlib, json, os, sys
task = json.loads(sys.argv[1])
sys.path[:0] = [os.path.abspath(one) for one in task["paths"]]
module, _, names = task["backend"].partition(":")
backend = importlib.import_module(module)
for name in filter(None, names.split(".")):
    backend = getattr(backend, name)
def answer(**values):
    with open(task["answer"], "w") as file:
        json.dump(values, file)
    raise SystemExit
needs = getattr(backend, "get_requires_for_build_wheel", lambda _: [])({}) if task["asks"] else []
if needs:
    answer(needs=list(needs))
backend.build_wheel(task["wheel"], {})
answer(needs=[])
"""


def require_confinement(question, found):
    """
    Raises Refused on a machine where the code of a package could read and write the server's files. `found`: the
    layers of confinement that this machine has.
    """
    if not (found.namespaces or found.landlock):
        raise Refused(
            f"{question['name']} has no wheel for the Python of this server, and builds cannot be confined on this machine, which "
            "has neither namespaces nor Landlock. Ask for a version that has wheels."
        )


def unpack(question, _) -> dict:
    """Unpacks the archive. Returns the requirements of its build."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE_BYTES, MAX_FILE_BYTES))
    work = os.path.join(question["build"], "work")
    archive, source = os.path.join(work, question["archive"]), os.path.join(work, "source")
    try:
        if archive.endswith(".zip"):
            with zipfile.ZipFile(archive) as opened:
                opened.extractall(source)
        else:
            with tarfile.open(archive, "r:*") as opened:
                # The oldest supported versions of Python lack the filter. This process can write
                # nothing outside of its folder anyway.
                opened.extractall(source, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    except (OSError, ValueError, EOFError, tarfile.TarError, zipfile.BadZipFile, RuntimeError) as error:
        raise Refused(f"The sources of {question['name']} cannot be unpacked: {error}") from None
    os.unlink(archive)
    for name in ("wheel", "tmp", "home"):
        os.makedirs(os.path.join(work, name), exist_ok=True)
    return {"needs": read_system(find_project(source, question), question)["requires"]}


def find_project(source, question) -> str:
    """Returns the one folder that an archive of sources consists of."""
    names = os.listdir(source) if os.path.isdir(source) else []
    if len(names) != 1:
        raise Refused(f"The archive of {question['name']} has not one folder with the sources.")
    return os.path.join(source, names[0])


def read_system(project, question) -> dict:
    """Returns the members of [build-system] in pyproject.toml."""
    try:
        with open(os.path.join(project, "pyproject.toml"), "rb") as file:
            system = tomllib.loads(file.read(MAX_PROJECT_BYTES).decode()).get("build-system")
    except FileNotFoundError:
        return LEGACY
    except (OSError, ValueError, RecursionError) as error:
        raise Refused(f"The pyproject.toml of {question['name']} cannot be read: {error}") from None
    if system is None:
        return LEGACY
    system = {"build-backend": LEGACY["build-backend"], "backend-path": [], **system} if isinstance(system, dict) else {}
    if not (is_texts(system.get("requires")) and is_texts(system["backend-path"]) and isinstance(system["build-backend"], str)):
        raise Refused(f"The [build-system] of {question['name']} is not as PEP 518 describes it.")
    return system


def is_texts(value) -> bool:
    return (
        isinstance(value, list)
        and len(value) <= MAX_REQUIREMENTS
        and all(isinstance(one, str) and len(one) <= MAX_REQUIREMENT_CHARS for one in value)
    )


def build(question, say) -> dict:
    """
    Makes a wheel in `work/wheel`. If the step has `asks`, first asks the backend which further packages the build
    needs. If there are any, returns them and makes no wheel.
    """
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE_BYTES, MAX_FILE_BYTES))
    work, label = os.path.join(question["build"], "work"), f"{question['name']} {question['version']}"
    project = find_project(os.path.join(work, "source"), question)
    system = read_system(project, question)
    say(op="install-progress", text=f"building {label}")
    answer = os.path.join(work, "answer.json")
    environment = os.path.join(question["build"], "environment")
    task = {
        "backend": system["build-backend"],
        "paths": system.get("backend-path", []) or ([project] if system is LEGACY else []),
        "asks": question["asks"],
        "answer": answer,
        "wheel": os.path.join(work, "wheel"),
    }
    env = {
        "PATH": f"{environment}/bin:/usr/local/bin:/usr/bin:/bin",
        "HOME": os.path.join(work, "home"),
        "TMPDIR": os.path.join(work, "tmp"),
        "LANG": "C.UTF-8",
        "VIRTUAL_ENV": environment,
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [os.path.join(environment, "bin", "python"), "-c", HOOKS, json.dumps(task)]
    with subprocess.Popen(
        command, env=env, cwd=project, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        said = read_tail(process.stdout)
    if process.returncode == -signal.SIGKILL:  # killed at the limit of memory
        raise Refused(f"Building {label} from its sources needs more memory than a build may use. Ask for a version that has wheels.")
    if process.returncode != 0:
        words = shown(said) or f"exit code {process.returncode}"
        raise Refused(f"{label} could not be built from its sources: {words}{find_lack(said, env['PATH'])}")
    return {"needs": read_needs(answer, label)}


def find_lack(said, path) -> str:
    """Returns a sentence about the program or the headers that this machine lacks, when the output of a build mentions
    them; an empty text otherwise."""
    words = said.decode("utf-8", "replace")
    if COMPILER.search(words) and not any(shutil.which(name, path=path) for name in COMPILERS):
        return " (The server's machine has no C compiler, which this build needs: gcc or clang, on Debian the package build-essential.)"
    if "Python.h" in words and not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")):
        return " (The server's machine lacks the headers of Python, which this build needs: on Debian the package python3-dev.)"
    return ""


def read_tail(stream) -> bytes:
    """Reads to the end of the output, and returns its last bytes."""
    tail = b""
    while chunk := stream.read1():
        tail = (tail + chunk)[-TAIL_BYTES:]
    return tail


def shown(said) -> str:
    """Returns the last lines of a build's output on one line."""
    lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    words = " ".join(lines[-SHOWN_LINES:])[-SHOWN_CHARS:]
    return "".join(one if one.isprintable() else " " for one in words)


def read_needs(path, label) -> list[str]:
    try:
        with open(path, "rb") as file:
            needs = json.loads(file.read(MAX_ANSWER_BYTES))["needs"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        needs = None
    if not is_texts(needs):
        raise Refused(f"The build of {label} ended without an answer.")
    return needs
