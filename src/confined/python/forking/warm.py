"""The modules that the zygote loads so that no kernel has to. Those of marimo itself are loaded before the zygote says hello, so
that the first session opens as fast as later ones; libraries are loaded by the next generation. Nothing here may leave a thread
running: a lock that it holds at a fork stays locked in every child. Libraries are imported, never used.
"""

import functools
import gc
import os
import random
import sys

LATE_IMPORTS = """
    asyncio concurrent.futures.thread getpass pdb readline termios uuid webbrowser narwhals._interchange.dataframe
    marimo._runtime.kernel_lifecycle marimo._runtime.marimo_pdb marimo._runtime.params
    marimo._runtime.runner.hooks_post_execution marimo._runtime.runner.hooks_on_finish
    marimo._runtime.runner.hooks_pre_execution marimo._runtime.runner.hooks_preparation
    marimo._runtime.runner.hooks_lens marimo._save.signing_policy marimo._save.manifest
    marimo._output.formatters.formatters marimo._output.formatting marimo._output.utils
    marimo._messaging.console_output_worker marimo._plugins.stateless.callout
    marimo._plugins.ui._impl.anywidget.comm_provider marimo._utils.typing marimo._data._external_storage.get_storage
    marimo._data._external_storage.storage pygments.lexers.python pygments.formatters.html
"""
LIBRARIES = "numpy pyarrow pandas duckdb sqlglot altair matplotlib.pyplot"
# modules that marimo or the library imports when a cell first shows a value of the library
FOLLOWING = {
    "pandas": """
        pyarrow.pandas_compat narwhals._pandas_like.dataframe narwhals._pandas_like.group_by
        narwhals._pandas_like.namespace narwhals._pandas_like.selectors narwhals.stable.v2._namespace
        pandas.core.methods.to_dict
    """,
    "altair": "narwhals.stable.v1._namespace narwhals._interchange.series",
    "sqlglot": "sqlglot.dialects.duckdb",
    "matplotlib.pyplot": """
        marimo._output.mpl PIL.BmpImagePlugin PIL.GifImagePlugin PIL.JpegImagePlugin PIL.PngImagePlugin
        PIL.PpmImagePlugin
    """,
}

# modules with which a notebook is written as a page
OF_EXPORTS = "marimo._export.exporter marimo._export.serialization marimo._session.state.session_view"

ENTRY_POINTS = ("entry_points", "get_entry_points")


def prepare():
    """Does the first steps that all kernels have in common ahead of time."""
    # pyarrow's allocator would start a thread
    os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")
    cache_entry_points()
    import_late()
    use_first()


def cache_entry_points():
    """Caches the metadata of packages, which marimo reads and searches on every run. The zygote is restarted when packages
    change."""
    from marimo._entrypoints import registry

    for name in ENTRY_POINTS:
        setattr(registry, name, functools.cache(getattr(registry, name)))
    registry.entry_points()


def forget_entry_points():
    """Called in a kernel that has packages of its own."""
    from marimo._entrypoints import registry

    for name in ENTRY_POINTS:
        if hasattr(find := getattr(registry, name), "cache_clear"):
            find.cache_clear()


def import_late():
    for name in LATE_IMPORTS.split():
        __import__(name)


def import_exports():
    """Imports the modules of exports, which no kernel needs, for the processes that write them."""
    for name in OF_EXPORTS.split():
        __import__(name)


def use_first():
    """Builds objects that are otherwise built on first use: markdown, the compiler's tables, the
    regular expressions of highlighted tracebacks."""
    import marimo
    from marimo._ast.compiler import compile_cell
    from marimo._messaging.tracebacks import _highlight_traceback

    marimo.md("# x")
    _ = marimo.ui.slider
    compile_cell("import marimo as mo\nx = 1", cell_id="x")
    _highlight_traceback(
        'Traceback (most recent call last):\n  File "x", line 1, in <module>\n    f(a=1)\n    ^\nValueError: x\n'
    )


class NeedsDisplay(BaseException):
    """Raised by an import of IPython before there is a kernel. Libraries do not mistake it for a
    missing package.
    """


class WithoutIPython:
    """Refuses to import IPython. Kernels import it when a cell needs it: marimo replaces its
    `display` at that moment, and a library that had imported `display` earlier would keep the
    original, which only prints."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "IPython":
            raise NeedsDisplay
        return None


def import_library(name):
    """
    Loads a library. Skips an absent one. The interpreter may be the operator's own, with other versions, so this also
    skips a library that imports IPython, such as altair where there are widgets.
    """
    sys.meta_path.insert(0, WithoutIPython)
    try:
        for module in (name, *FOLLOWING.get(name, "").split()):
            __import__(module)
    except ImportError as error:
        print(f"{name} is not wholly preloaded: {error}", file=sys.stderr)
    except NeedsDisplay:
        print(f"{name} is not wholly preloaded: it imports IPython", file=sys.stderr)
        forget_halves()
    finally:
        sys.meta_path.remove(WithoutIPython)


def forget_halves():
    """Forgets modules of a package whose import did not finish. The package would otherwise lack
    them as attributes.
    """
    for module in [one for one in sys.modules if one.partition(".")[0] not in sys.modules]:
        del sys.modules[module]


def settle() -> int:
    """Collects garbage and freezes the rest, so that no child's collector touches shared pages. Returns the thread
    count."""
    gc.collect()
    gc.freeze()
    if count_threads() > 1:
        # OpenBLAS stops its threads at a fork and restarts them on first use, which never happens
        # here
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
    return count_threads()


def count_threads() -> int:
    return len(os.listdir("/proc/self/task"))


def seed():
    """
    Seeds random numbers. Called in a kernel, because otherwise all kernels would draw the same random numbers as the
    process from which they were forked.
    """
    random.seed()
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
