# `npm run python-client` writes this file from `_async/__init__.py`: do not edit it.
