"""Worker processes of notebooks (`multiprocessing` with `spawn` and `forkserver`).

Such a worker is a new Python that imports the main program's file to find its functions. A notebook is not such a file,
so definitions of its cells go to workers by value. This applies only to functions and classes of cells, and only once a
notebook has started such a worker; with `fork` a worker already has everything.
"""

import importlib
import marshal
import sys
import types
from multiprocessing import spawn
from multiprocessing.reduction import ForkingPickler

MAIN = "__main__"
LEFT_OUT = {"__dict__", "__weakref__", "__module__", "__qualname__", "__doc__", "__firstlineno__", "__static_attributes__"}


def install():
    """Called once in a process that runs notebooks."""
    prepare = spawn.get_preparation_data

    def get_preparation_data(name):
        ForkingPickler.reducer_override = _reduce
        data = prepare(name)
        data.pop("init_main_from_path", None)  # the file is missing, or differs from the code that ran
        data.pop("init_main_from_name", None)
        return data

    spawn.get_preparation_data = get_preparation_data


def _reduce(_pickler, value):
    """`reducer_override` of a pickler: says how to send a value whose definition the other process
    does not have.
    """
    if isinstance(value, types.FunctionType) and value.__module__ == MAIN:
        cells = value.__closure__ or ()
        code = marshal.dumps(value.__code__)
        return make_function, (code, value.__name__, value.__qualname__, len(cells)), _state(value), None, None, fill_function
    if isinstance(value, type) and value.__module__ == MAIN:
        members = {name: member for name, member in vars(value).items() if name not in LEFT_OUT}
        return make_class, (type(value), value.__name__, value.__qualname__, value.__bases__), members, None, None, fill_class
    if isinstance(value, types.ModuleType):
        return importlib.import_module, (value.__name__,)
    return _reduce_member(value)


def _reduce_member(value):
    """Reduces members of classes that picklers do not support."""
    if isinstance(value, (staticmethod, classmethod)):
        return type(value), (value.__func__,)
    if type(value) is property:
        return property, (value.fget, value.fset, value.fdel)
    if isinstance(value, types.MappingProxyType):
        return make_mapping, (dict(value),)
    if type(value).__module__ == "dataclasses" and type(value).__name__ in ("_FIELD_BASE", "_MISSING_TYPE"):
        name = getattr(value, "name", "MISSING")  # dataclasses has one object of each type, under a name of its own
        return getattr, (sys.modules["dataclasses"], name)
    return NotImplemented


def _state(function):
    names = _names_in(function.__code__)
    return {
        "globals": {name: function.__globals__[name] for name in names if name in function.__globals__},
        "cells": [cell.cell_contents for cell in function.__closure__ or ()],
        "defaults": (function.__defaults__, function.__kwdefaults__),
        "dict": function.__dict__,
    }


def _names_in(code):
    """Returns the names that code, and code nested in it, may look up in its globals."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names_in(constant)
    return names


def make_function(code, name, qualname, cells):
    """Called in the worker: returns the function without its globals, defaults and closure, which may refer to it."""
    main = sys.modules[MAIN]
    closure = tuple(types.CellType() for _ in range(cells))
    function = types.FunctionType(marshal.loads(code), vars(main), name, None, closure or None)
    function.__qualname__, function.__module__ = qualname, MAIN
    return _known(function)


def fill_function(function, state):
    """In the worker: gives a function its globals, defaults and closure."""
    vars(sys.modules[MAIN]).update(state["globals"])
    function.__defaults__, function.__kwdefaults__ = state["defaults"]
    function.__dict__.update(state["dict"])
    for cell, value in zip(function.__closure__ or (), state["cells"], strict=True):
        cell.cell_contents = value


def make_class(metaclass, name, qualname, bases):
    """In the worker: makes a class without its members."""
    return _known(types.new_class(name, bases, {"metaclass": metaclass}, lambda space: space.update({"__module__": MAIN, "__qualname__": qualname})))


def fill_class(made, members):
    """In the worker: gives a class its members."""
    for name, member in members.items():
        setattr(made, name, member)


def make_mapping(members):
    """Called in the worker: returns a read-only mapping; its type has no name that a pickler finds."""
    return types.MappingProxyType(members)


def _known(made):
    """Registers the function or class under its name, which results from the worker refer to."""
    if "." not in made.__qualname__:
        setattr(sys.modules[MAIN], made.__name__, made)
    return made
