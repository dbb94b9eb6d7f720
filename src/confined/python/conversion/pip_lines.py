"""The lines of a Jupyter notebook that install packages with pip: `!pip install …`, `%pip install …`.

An import runs nothing and installs nothing, so these lines become comments. Their requirements are returned, so that
the person who imports the notebook can decide. marimo would make a dependency of every word after `install`, and the
server would install it. For `-r requirements.txt` that would be a package that anybody could publish under that name.
"""

import re
import shlex
import tomllib

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from script_block import find_block

LINE = re.compile(r"^[ \t]*[!%]{1,2}[ \t]*(?P<command>\S[^\n]*)$", re.MULTILINE)
CONTINUED = re.compile(r"\\\r?\n")
# A shell ends the command at these characters, or takes the next word for a file.
ENDS = re.compile(r"[;|&]+")
REDIRECTION = re.compile(r"[0-9&]?>{1,2}(?P<file>\S*)|<(?P<input>\S*)")
QUIET = {
    *("-q", "-qq", "-qqq", "--quiet", "-v", "--verbose", "-U", "--upgrade", "--user", "--no-cache-dir", "--no-cache", "--pre"),
    *("--force-reinstall", "-I", "--ignore-installed", "--no-deps", "--no-input", "--disable-pip-version-check", "-y", "--yes"),
    *("--break-system-packages", "--no-warn-script-location", "--system", "--no-build-isolation", "--prefer-binary"),
}
SHORT = re.compile(r"-[qvUIy]+")
QUIET_WITH_VALUE = {"--progress-bar", "--root-user-action", "--upgrade-strategy", "--timeout", "--retries", "--default-timeout"}
FILES = {"-r", "--requirement", "-c", "--constraint", "-e", "--editable"}
NO_NAMES = (".txt", ".in", ".whl", ".zip", ".gz", ".toml", ".cfg", ".py", ".yml", ".yaml")
MAX_REQUIREMENTS, MAX_WORDS, MAX_CHARS = 100, 50, 200


def find_requirements(cells) -> dict:
    """
    Returns the pip requests of a notebook's code cells. `requirements` can be installed: they are in the order of the
    cells, and each name has its last requirement only. `others` are words and lines that cannot be installed.
    """
    named, others = {}, []
    for cell in cells:
        if cell.get("cell_type") != "code":
            continue
        source = cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
        for line in LINE.finditer(CONTINUED.sub(" ", source)):
            if (words := _find_words(line["command"])) is None:
                continue
            found, rest = _read_words(words)
            named |= {canonicalize_name(one.name): str(one) for one in found if one.name != "pip"}
            others += [word[:MAX_CHARS] for word in rest if word[:MAX_CHARS] not in others]
    return {"requirements": list(named.values())[:MAX_REQUIREMENTS], "others": others[:MAX_WORDS]}


def _find_words(command):
    """Returns the words after `pip install`; None for another command."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters = True, "#"
    try:
        words = list(lexer)
    except ValueError:
        words = command.split()
    before = {"sudo", "python", "python3", "{sys.executable}", "$sys.executable", "uv", "-m"}
    at = next((at for at, word in enumerate(words) if word not in before), len(words))
    is_pip = at + 1 < len(words) and re.fullmatch(r"pip[0-9.]*", words[at]) and words[at + 1] == "install"
    return words[at + 2 :] if is_pip else None


def _read_words(words):
    """
    Returns the requirements among the words, and the words that are not requirements. If an option names another
    index or is unknown, the line has no requirements: in another index, the same names may mean other packages.
    """
    found, rest, at = [], [], 0
    while at < len(words):
        word = words[at]
        at += 1
        if ENDS.match(word):
            rest.append(" ".join(words[at - 1 :]))
            break
        # A shell would also read `numpy>=1` as a redirection to a file, but people who write it
        # mean the version.
        if redirection := REDIRECTION.fullmatch(word):
            at += 0 if redirection["file"] or redirection["input"] else 1
            continue
        if word in QUIET or SHORT.fullmatch(word) or word.partition("=")[0] in QUIET_WITH_VALUE:
            at += 1 if word in QUIET_WITH_VALUE else 0
            continue
        if word in FILES:
            rest.append(" ".join(words[at - 1 : at + 1]))
            at += 1
            continue
        if word.startswith("-"):
            return [], [" ".join(words)]
        is_last = re.search(r"[;|&]+$", word)
        requirement = _parse(word.rstrip(";|&"))
        if requirement is None:
            rest.append(word)
        else:
            found.append(requirement)
        if is_last:
            rest += [" ".join(words[at:])] if at < len(words) else []
            break
    return found, rest


def _parse(word):
    """Returns the requirement if the whole word is one; None for a file, an address, or text that a shell would expand.
    """
    if word.lower().endswith(NO_NAMES) or len(word) > MAX_CHARS:
        return None
    try:
        requirement = Requirement(word)
    except InvalidRequirement:
        return None
    return None if requirement.url else requirement


def keep_as_comments():
    """Makes marimo's reader of .ipynb treat `!pip install` lines as comments, and add no dependencies."""
    from marimo._convert.ipynb import to_ir

    def handle(command_line, tokens, indent_level=0):
        if _find_words(command_line) is None:
            # marimo passes only the words from `pip` on
            return to_ir._shlex_to_subprocess_call(command_line, _split(command_line), indent_level)
        comment = f"{to_ir._pass_if_indented(indent_level)}# !{command_line}"
        return to_ir.ExclamationCommandResult(comment, [], False)

    to_ir._extract_pip_install = handle


def _split(command_line):
    try:
        return shlex.split(command_line)
    except ValueError:
        return command_line.split()


def with_dependencies(header, requirements) -> str:
    """Returns the text above a notebook with these requirements among the dependencies of its script metadata (PEP
    723). A package that is already listed is not changed."""
    from marimo._environments import script_metadata

    found = find_block(header, " \t") if header else None
    try:
        project = tomllib.loads("\n".join(line[2:] for line in found.lines)) if found else {}
    except tomllib.TOMLDecodeError:
        return header  # opening the notebook reports where it is broken
    given = project.get("dependencies", [])
    if not (isinstance(given, list) and all(isinstance(one, str) for one in given)):
        return header
    known = {canonicalize_name(one.name) for one in map(_parse, given) if one is not None}
    added = [one for one in requirements if canonicalize_name(Requirement(one).name) not in known]
    block = script_metadata.dumps({**project, "dependencies": [*given, *added]}).strip("\n")
    if found is None:
        return f"{block}\n{header}" if header else block
    return f"{header[: found.start]}{block}{header[found.end :]}"
