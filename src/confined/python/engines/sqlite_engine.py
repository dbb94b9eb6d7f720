"""SQLite over a file of a workspace. The rules for statements are in sqlite_rules.py."""

import functools
import urllib.parse

import apsw

from engines.failure import SEVERAL, EngineFailure, refuse
from engines.rows import Portions, read_parameters, take
from engines.sqlite_rules import Rules, harden

BUSY_MS = 5000
HEAP_BYTES = 512 * 1024 * 1024
NOT_UTF8 = "A text of the result is not UTF-8. Read it as bytes, with CAST(… AS BLOB)."
READ_ONLY = "attempt to write a readonly database"  # SQLite's own message, with which the statement would otherwise fail later
# how the file is opened; no mode creates a file, and a probe makes no locks and no journal either
FLAGS = {
    "probe": apsw.SQLITE_OPEN_READONLY,
    "read": apsw.SQLITE_OPEN_READONLY,
    "write": apsw.SQLITE_OPEN_READWRITE,
}
VFS = "folder"


class FolderVfs(apsw.VFS):
    """
    The files of one database, in a folder whose descriptor is open. All paths go through that descriptor: by its
    name, SQLite might reach another folder when it makes a journal later.
    """

    def __init__(self):
        super().__init__(VFS, base="unix")
        self.files = ()

    def serve(self, path):
        self.files = (path, f"{path}-journal", f"{path}-wal")

    def xFullPathname(self, name):
        return name

    def xOpen(self, name, flags):
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if path not in self.files:
            raise apsw.CantOpenError("no other file can be opened")
        return super().xOpen(name, flags)

    def xAccess(self, name, flags):
        return name in self.files and super().xAccess(name, flags)

    def xDelete(self, name, sync):
        if name not in self.files:
            raise apsw.IOError("no other file can be deleted")
        super().xDelete(name, sync)

    def xDlOpen(self, name):
        return 0


@functools.cache
def prepare() -> FolderVfs:
    """Called once in a process, before its first connection. Journals of single statements stay in memory."""
    apsw.shutdown()  # otherwise SQLite takes no configuration
    apsw.config(apsw.SQLITE_CONFIG_STMTJRNL_SPILL, -1)
    apsw.initialize()
    apsw.hard_heap_limit(HEAP_BYTES)
    return FolderVfs()


class SqliteEngine:
    """One database, opened in one mode: `probe`, `read` or `write`."""

    def __init__(self, workspace, path, mode):
        self.workspace, self.path, self.mode = workspace, path, mode
        self.vfs = prepare()
        self.connection = self.place = self.cursor = self.portions = self.rules = None
        self.changed = None  # the rows that the last statement without columns has changed

    def open(self):
        """Opens the file, unless it is open already. Raises EngineFailure."""
        place = self.workspace.find(self.path)
        if self.place is not None and self.place.identity == place.identity:
            place.close()
            return
        self._close()
        self.place = place
        try:
            self._connect()
        except apsw.BusyError:
            self._close()
            raise EngineFailure("file_locked") from None
        except (apsw.Error, OSError):
            self._close()
            raise EngineFailure("file_unusable") from None

    def query(self, sql, parameters):
        """Runs the statement up to its first row. Returns the columns, or None when the statement
        returns nothing.
        """
        self.end()
        self.open()
        self.changed, before = None, self.connection.total_changes()
        self.rules.has_changed_connection = self.rules.has_tried_to_write = False
        cursor = self.cursor = self.connection.cursor()
        statement = Statement(sql)
        cursor.exec_trace = statement
        parameters = [int(one) if isinstance(one, bool) else one for one in read_parameters(parameters)]
        self._explained(lambda: cursor.execute(sql, parameters, can_cache=False), statement)
        columns = statement.columns
        if not columns:
            # without the changes of triggers; if this statement has changed nothing, SQLite would
            # return the count of an earlier one
            self.changed = self.connection.changes() if self.connection.total_changes() > before else 0
            self.end()
            return None
        self.portions = Portions(lambda count: take(cursor, count), by_cell=True)
        return columns

    def next(self) -> bytes:
        if self.portions is None:
            raise EngineFailure("failed")
        return self._explained(self.portions.next)

    def end(self):
        """Ends the statement. Also ends the connection when a statement has changed more than
        rows, so that temporary tables and transactions do not reach the next statement."""
        if self.cursor is not None:
            self.cursor.close(True)
            self.cursor = self.portions = None
        if self.connection is not None and (self.rules.has_changed_connection or self.connection.in_transaction):
            self._close()

    def rest(self):
        """Does nothing: SQLite has no work that could be done before a statement arrives."""

    def _connect(self):
        path = self.place.path
        self.vfs.serve(path)
        name, flags = path, FLAGS[self.mode]
        if self.mode == "probe":
            name, flags = f"file:{urllib.parse.quote(path)}?immutable=1", flags | apsw.SQLITE_OPEN_URI
        self.connection = apsw.Connection(name, flags=flags, vfs=VFS)
        self.connection.set_busy_timeout(BUSY_MS)
        harden(self.connection)
        for pragma in ("temp_store = MEMORY", "mmap_size = 0", "cell_size_check = ON"):
            self.connection.execute(f"PRAGMA {pragma}")
        self.connection.execute("SELECT name FROM sqlite_master LIMIT 1").fetchall()
        self.rules = Rules(self.mode == "write")
        self.connection.authorizer = self.rules

    def _close(self):
        self.cursor = self.portions = None
        if self.connection is not None:
            self.connection.close(True)
            self.connection = None
        if self.place is not None:
            self.place.close()
            self.place = None

    def _explained(self, work, statement=None):
        try:
            return work()
        except apsw.ExecTraceAbort:
            raise refuse(SEVERAL) from None
        except apsw.BusyError:
            raise EngineFailure("file_locked") from None
        except apsw.AuthError as error:
            raise refuse(READ_ONLY if self.rules.has_tried_to_write else str(error)) from None
        except UnicodeDecodeError:
            raise refuse(NOT_UTF8) from None
        except (apsw.Error, OverflowError, TypeError, ValueError) as error:
            raise refuse(str(error)) from None


class Statement:
    """Checks a statement after it is compiled and before it runs: the text must contain no other
    statement.
    """

    def __init__(self, sql):
        self.sql = sql
        self.columns = None

    def __call__(self, cursor, statement, bindings) -> bool:
        if self.columns is not None:
            return True  # the rest is blank
        if not is_blank(self.sql[len(statement) :]):
            return False
        self.columns = [{"name": name, "type": type_of(declared), "byCell": True} for name, declared in cursor.get_description()]
        return True


def is_blank(sql) -> bool:
    """Returns whether the text contains only blanks, comments and semicolons."""
    at = 0
    while at < len(sql):
        if sql[at] in " \t\n\f\r;":
            at += 1
        elif sql.startswith("--", at):
            at = end_of(sql, "\n", at)
        elif sql.startswith("/*", at):
            at = end_of(sql, "*/", at + 2)
        else:
            return False
    return True


def end_of(sql, mark, at) -> int:
    found = sql.find(mark, at)
    return len(sql) if found == -1 else found + len(mark)


def type_of(declared) -> str:
    """
    Returns the type that a column's declaration hints at. A column may hold values of any kind, and a computed column
    has no declaration, so each cell carries its own type.
    """
    declared = (declared or "").upper()
    if "INT" in declared:
        return "integer"
    if any(part in declared for part in ("REAL", "FLOA", "DOUB")):
        return "float"
    if any(part in declared for part in ("CHAR", "CLOB", "TEXT")):
        return "text"
    return "bytes" if "BLOB" in declared else "other"
