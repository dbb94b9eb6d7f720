"""Runs uv in a child of the zygote, and has the errors that such a child shows to people."""

import os
import re
import subprocess
import sys

from children.uv_failure import explain

CONCURRENT_INSTALLS = "8"  # otherwise uv starts one Python for each processor to compile
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
# uv's line for a package that has only sources, or only wheels for other machines
WITHOUT_WHEELS = re.compile(r"Wheels are required for `([A-Za-z0-9._-]+)`")


class Refused(Exception):
    """Raised when requirements cannot be met. The message is for people."""


class WithoutWheels(Refused):
    """
    Raised when requirements cannot be met with wheels alone. `lacking` lists the packages without wheels, each with
    the versions of it that other packages ask for: [[name, [specifier]]].
    """

    def __init__(self, message, lacking):
        super().__init__(message)
        self.lacking = lacking


class Uv:
    """
    Returns the command of uv. Every feature is off that would run code of a package or connect to anything but the
    index.
    """

    def __init__(self, question):
        folder, proxy = question["folder"], question["proxy"]
        self.path = question["uv"]
        self.cache = os.path.join(os.path.dirname(folder), "cache")
        self.built = question.get("built", [])  # folders with wheels that were built from sources
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

    def install(self, *args, python=sys.executable) -> str:
        """Runs `uv pip install` with wheels only, and returns the text that uv printed about its work. Raises `Refused`."""
        found = [part for folder in self.built for part in ("--find-links", folder)]
        return self.run("pip", "install", *args, "--python", python, "--only-binary", ":all:", *found)

    def run(self, *args) -> str:
        command = [self.path, *args, "--color", "never"]
        try:
            done = subprocess.run(command, env=self.env, capture_output=True, stdin=subprocess.DEVNULL, cwd=self.env["HOME"])
        except OSError as error:  # uv may be outside of the folders that confined processes see
            raise Refused(f"{self.path}, which installs packages, cannot be run: {error.strerror}.") from None
        said = done.stderr.decode("utf-8", "replace")
        if done.returncode == 0:
            return said
        message = explain(said.replace(f"{self.env['HOME']}/", ""), done.returncode)
        names = dict.fromkeys(WITHOUT_WHEELS.findall(said))
        if not names:
            raise Refused(message)
        raise WithoutWheels(message, [[name, find_asked_for(name, said)] for name in names])


def find_asked_for(name, said) -> list[str]:
    """Returns the versions of a package that other packages ask for, as far as an error of uv names
    them.
    """
    words = re.sub(r"\s+", " ", said)
    return re.findall(rf"depends? on {re.escape(name)}((?:[<>=!~]=?[0-9A-Za-z.*+!]+,?)+)", words)


def write_lines(path, lines):
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
