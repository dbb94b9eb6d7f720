"""The steps of a build that reach the index or the cache, and run no code of a package: choosing and fetching an archive of sources,
installing the packages that its build needs, and keeping the wheel. build_backend.py has the other steps. A build has a folder:

    environment/   a virtual environment with the packages that the build needs
    work/          the only folder that the build may write: archive, source/, wheel/, tmp/

A wheel that was built stays in the cache. It depends only on its sources, the index and this Python, so all sets
share it.
"""

import contextlib
import hashlib
import html.parser
import json
import os
import shutil
import stat
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)

from children.uv import Refused, Uv, write_lines

MAX_PAGE_BYTES = 64 << 20
MAX_ARCHIVE_BYTES = 1 << 30
MAX_WHEEL_BYTES = 2 << 30
MAX_BUILD_REQUIREMENTS = 100
CHUNK_BYTES = 1 << 20
TIMEOUT_S = 60
FORMAT = 1  # part of a key: another value makes every wheel be built again
NO_LINK = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class Links(html.parser.HTMLParser):
    """The links of a page of an index (PEP 503)."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        if tag == "a":
            self.found.append(dict(attributes))


def fetch(question, say) -> dict:
    """
    Chooses the newest archive of sources that the requirements allow, and fetches it into the folder of the build.
    Returns its version. If it was built before, `built` is the folder of its wheel in the cache.
    """
    uv, name, work = Uv(question), question["name"], os.path.join(question["build"], "work")
    say(op="install-progress", text=f"looking for the sources of {name}")
    page_url = f"{question['index'].rstrip('/')}/{name}/"
    opener = open_way(question["proxy"], uv.env)
    url, file, version = choose(name, question["requirements"], read_page(opener, page_url), page_url)
    os.makedirs(work)
    suffix = ".zip" if file.endswith(".zip") else ".tar.gz"
    digest = download(opener, url, os.path.join(work, f"archive{suffix}"))
    check_digest(url, digest, file)
    facts = json.dumps([FORMAT, sys.version, sys.platform, question["index"], file, digest])
    key = hashlib.sha256(facts.encode()).hexdigest()[:40]
    kept = os.path.join(uv.cache, "built", key)
    built = kept if os.path.isdir(kept) else None
    return {"version": str(version), "archive": f"archive{suffix}", "key": key, "built": built}


def open_way(proxy, env):
    """Returns an opener that sends all requests to the proxy, and follows only http and https links."""
    os.environ.clear()  # variables of the machine may name another proxy, or exempt hosts from it
    os.environ.update(env)
    os.environ.pop("NO_PROXY", None)
    return urllib.request.build_opener(urllib.request.ProxyHandler({"http": proxy, "https": proxy}))


def read_page(opener, url) -> list[dict]:
    try:
        with opener.open(urllib.request.Request(url, headers={"Accept": "text/html"}), timeout=TIMEOUT_S) as response:
            body = response.read(MAX_PAGE_BYTES + 1)
    except (OSError, ValueError) as error:
        raise Refused(f"The index has no page of this package that can be read: {error}.") from None
    if len(body) > MAX_PAGE_BYTES:
        raise Refused("The page of this package in the index is too large.")
    links = Links()
    links.feed(body.decode("utf-8", "replace"))
    return links.found


def choose(name, requirements, links, page_url):
    """Returns (URL, file name, version) of the newest archive that may be used."""
    allowed = SpecifierSet()
    for text in requirements:
        with contextlib.suppress(InvalidRequirement, InvalidSpecifier):
            requirement = Requirement(text.removeprefix("--constraint="))
            if canonicalize_name(requirement.name) == name:
                allowed &= requirement.specifier
    archives = {}
    for link in links:
        url = urllib.parse.urljoin(page_url, link.get("href") or "")
        file = urllib.parse.unquote(urllib.parse.urlsplit(url).path.rpartition("/")[2])
        with contextlib.suppress(InvalidSdistFilename, InvalidSpecifier):
            found, version = parse_sdist_filename(file)
            python = SpecifierSet(link.get("data-requires-python") or "")
            is_usable = "data-yanked" not in link and python.contains(".".join(map(str, sys.version_info[:3])))
            if found == name and is_usable and urllib.parse.urlsplit(url).scheme in ("http", "https"):
                archives[version] = (url, file, version)
    versions = list(allowed.filter(archives))
    if not versions:
        raise Refused(f"{name} has no wheel for this Python, and no sources that can be built for it.")
    return archives[max(versions)]


def download(opener, url, path) -> str:
    """Downloads a file. Returns its SHA-256."""
    digest, size = hashlib.sha256(), 0
    try:
        with opener.open(url, timeout=TIMEOUT_S) as response, open(path, "xb") as file:
            while chunk := response.read(CHUNK_BYTES):
                size += len(chunk)
                if size > MAX_ARCHIVE_BYTES:
                    raise Refused("The archive of sources is too large.")
                digest.update(chunk)
                file.write(chunk)
    except (OSError, ValueError) as error:
        raise Refused(f"The archive of sources could not be fetched: {error}.") from None
    return digest.hexdigest()


def check_digest(url, digest, file):
    wanted = urllib.parse.parse_qs(urllib.parse.urlsplit(url).fragment).get("sha256")
    if wanted and wanted[0] != digest:
        raise Refused(f"{file} is not the file that the index describes: its SHA-256 differs.")


def make_environment(question, say) -> dict:
    """Installs the packages that a build needs into its environment."""
    uv, folder, requirements = Uv(question), os.path.join(question["build"], "environment"), question["requirements"]
    if len(requirements) > MAX_BUILD_REQUIREMENTS:
        raise Refused(f"The build of {question['name']} may require at most {MAX_BUILD_REQUIREMENTS} packages.")
    for text in requirements:
        check_build_requirement(question["name"], text)
    if not os.path.isdir(folder):
        uv.run("venv", "--python", sys.executable, folder)
    if requirements:
        say(op="install-progress", text=f"installing the packages that build {question['name']}")
        wanted = os.path.join(question["build"], "wanted.txt")
        write_lines(wanted, requirements)
        # Files are copied: the build must not have a link to a file of the cache.
        uv.install("--requirement", wanted, "--link-mode", "copy", python=os.path.join(folder, "bin", "python"))
    return {}


def check_build_requirement(name, text):
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        raise Refused(f"The build of {name} asks for {text!r}, which is not a requirement: {error}") from None
    if requirement.url:
        raise Refused(f"The build of {name} asks for an address. Packages come from the index of this server only.")


def keep(question, _) -> dict:
    """
    Copies the wheel of a build into the cache. The build has chosen its name and contents, so the file may be
    anything.
    """
    cache = os.path.join(os.path.dirname(question["folder"]), "cache", "built")
    os.makedirs(cache, exist_ok=True)
    kept, new = os.path.join(cache, question["key"]), tempfile.mkdtemp(prefix=".new-", dir=cache)
    try:
        with opened(os.path.join(question["build"], "work", "wheel"), NO_LINK | os.O_DIRECTORY) as folder:
            name = find_wheel(os.listdir(folder), question)
            with opened(name, NO_LINK, folder) as wheel:
                status = os.fstat(wheel)
                if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1 or status.st_size > MAX_WHEEL_BYTES:
                    raise Refused(f"The build of {question['name']} has not left a wheel that can be used.")
                with open(wheel, "rb", closefd=False) as source, open(os.path.join(new, name), "xb") as target:
                    shutil.copyfileobj(source, target, CHUNK_BYTES)
        with contextlib.suppress(OSError):  # another worker has built the same sources meanwhile
            os.rename(new, kept)
    except OSError as error:
        raise Refused(f"The build of {question['name']} has not left a wheel: {error.strerror}.") from None
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return {"built": kept}


def find_wheel(names, question) -> str:
    """Returns the name of the only wheel, which must belong to the package that was built."""
    wheels = [name for name in names if name.endswith(".whl")]
    with contextlib.suppress(InvalidWheelFilename, ValueError):
        (only,) = wheels
        found, version, _, _ = parse_wheel_filename(only)
        if found == question["name"] and str(version) == question["version"]:
            return only
    raise Refused(f"The build of {question['name']} {question['version']} has not left one wheel of this version.")


@contextlib.contextmanager
def opened(path, flags, folder=None):
    descriptor = os.open(path, flags, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
