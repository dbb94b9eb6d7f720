"""Runs code when a module is loaded: at once if the module already is, and otherwise when a
notebook imports it.
"""

import sys

_waiting = {}


def after_import(name, work):
    """Calls `work(module)` once. If `work` fails, the module is imported nevertheless, without the
    effect of `work`.
    """
    if module := sys.modules.get(name):
        work(module)
    else:
        _waiting[name] = work
        if _Finder not in sys.meta_path:
            sys.meta_path.insert(0, _Finder)


class _Finder:
    """A finder that finds no modules itself. For the awaited modules it asks the other finders, and
    watches the end of their import.
    """

    @staticmethod
    def find_spec(name, path=None, target=None):
        work = _waiting.pop(name, None)
        if work is None:
            return None
        for finder in sys.meta_path:
            find = None if finder is _Finder else getattr(finder, "find_spec", None)
            if find and (spec := find(name, path, target)):
                return _watched(spec, work)
        return None


def _watched(spec, work):
    run = getattr(spec.loader, "exec_module", None)
    if run is None:
        return spec

    def exec_module(module):
        run(module)
        work(module)

    spec.loader.exec_module = exec_module
    return spec
