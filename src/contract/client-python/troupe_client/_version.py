"""The version of the package, which `pyproject.toml` reads here."""

__version__ = "1.0.0"
