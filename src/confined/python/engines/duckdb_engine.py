"""DuckDB over a database file of a workspace, or over its data files as one view each.

The database is opened for each statement and closed after it: an open one holds a lock on its file, and sees only the
contents at its opening. It is always read-only. For writing, DuckDB would need access to the file system, and then
statements could also read the database file by its path.
"""

import contextlib
import os
import re
import stat

import duckdb

from engines import data_files
from engines.duckdb_columns import column_of, exact, is_plain
from engines.failure import SEVERAL, EngineFailure, refuse
from engines.rows import NOTHING, Portions, read_parameters

# Settings for access to the opened files only: no other files, no network, no extensions.
CONFIGURATION = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_unsigned_extensions": "false",
    "memory_limit": "2GB",
    "threads": "2",
}
# `python_enable_replacements`: a name in a statement must not refer to a Python variable of this module
CLOSED = "SET temp_directory = ''; SET python_enable_replacements = false; SET TimeZone = 'UTC'"
NOTHING_ELSE = "SET enable_external_access = false"
WITHOUT_FILES = "SET disabled_filesystems = 'LocalFileSystem'"
LOCKED = "SET lock_configuration = true"
READABLE_PRAGMAS = {
    "collations", "database_list", "database_size", "functions", "platform", "show", "show_tables",
    "show_tables_expanded", "storage_info", "table_info", "user_agent", "version",
}  # fmt: skip
MAX_DESCRIPTORS = 256
NO_TABLE = re.compile(r"Table with name (.{1,1000}?) does not exist")  # the message has text of the statement
SELECT, EXPLAIN, PRAGMA = duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN, duckdb.StatementType.PRAGMA


class DuckdbEngine:
    """A database file, or with `is_files` a data file or a folder of them."""

    changed = None  # statements of DuckDB here change no rows

    def __init__(self, workspace, path, is_files):
        self.workspace, self.path, self.is_files = workspace, path, is_files
        self.ahead = self.connection = self.portions = None
        self.held = []  # resources to close with the connection
        self.unreadable = {}  # the reason why a data file cannot be a table, by the name that the table would have

    def open(self):
        """Opens the database to check that it can be opened. Raises EngineFailure."""
        self._open()
        self.end()

    def query(self, sql, parameters):
        """Starts the statement. Returns its columns, or None when it returns nothing."""
        self.end()
        self._open()
        return self._explained(lambda: self._start(sql, read_parameters(parameters)))

    def next(self) -> bytes:
        if self.portions is None:
            raise EngineFailure("failed")
        rows = self._explained(self.portions.next)
        if rows is NOTHING:
            self.end()
        return rows

    def end(self):
        self.portions = None
        if self.connection is not None:
            self.connection.close()
            self.connection = None
        for one in self.held:
            one.close()
        self.held = []

    def rest(self):
        """
        Makes an instance of DuckDB for the next statement. Called between requests, because making one takes longer
        than opening a file.
        """
        if self.ahead is None and self.connection is None:
            self.ahead = new_instance()

    def _open(self):
        place = self.workspace.find(self.path, allow_folder=self.is_files)
        self.held.append(place)
        self.connection, self.ahead = self.ahead or new_instance(), None
        try:
            if self.is_files:
                self._open_files(place)
            else:
                self._open_database(place)
        except BaseException:
            self.end()
            raise

    def _open_database(self, place):
        refuse_log_elsewhere(place)
        name = named(place.name.rpartition(".")[0] or place.name)
        try:
            self.connection.execute(f"ATTACH {quoted(place.path)} AS {name} (TYPE duckdb, READ_ONLY); USE {name}")
            self.connection.execute(f"DETACH memory; {NOTHING_ELSE}; {WITHOUT_FILES}; {LOCKED}")
        except duckdb.Error as error:
            is_locked = "lock on file" in str(error)
            raise EngineFailure("file_locked" if is_locked else "file_unusable") from None
        if not is_open(place.identity):
            raise EngineFailure("file_missing")

    def _open_files(self, place):
        files = data_files.open_all(place)
        self.held += files
        if place.name is not None and not files:
            raise EngineFailure("file_unusable")
        paths = ", ".join(quoted(file.path) for file in files)
        self.connection.execute(f"SET allowed_paths = [{paths}]; {NOTHING_ELSE}; {LOCKED}")
        self.unreadable = {}
        for file in files:
            try:
                self.connection.execute(f"CREATE VIEW {named(file.view)} AS SELECT * FROM {file.reader(quoted(file.path))}")
            except duckdb.Error as error:
                # one unreadable file must not make the other files unavailable
                if place.name is not None:
                    raise EngineFailure("file_unusable") from None
                said = str(error).split("\n")[0].replace(os.path.realpath(file.path), file.name).replace(file.path, file.name)
                self.unreadable[file.view.lower()] = f"The file {file.name} is no table, because it cannot be read: {said}"

    def _start(self, sql, parameters):
        statements = self.connection.extract_statements(sql)
        if len(statements) != 1:
            raise refuse(SEVERAL)
        text, kind = statements[0].query, statements[0].type
        is_pivot = kind == duckdb.StatementType.MULTI and self._selects(text)
        if kind == duckdb.StatementType.MULTI and not is_pivot:
            raise refuse(SEVERAL)
        if kind != SELECT and not is_pivot:
            self._refuse_effects(kind, text)
            return self._start_directly(text, parameters)
        inner = text_of(text, meaningful(text))
        described = self.connection.execute(f"DESCRIBE {inner}", parameters or None).fetchall()
        names, types = [row[0] for row in described], [row[1] for row in described]
        if not all(map(is_plain, types)):
            self._execute(f"SELECT * FROM ({inner}\n) LIMIT 0", parameters)
            types = [one[1] for one in self.connection.description]
        aliases = [f"c{at}" for at in range(len(types))]
        cells = ", ".join(exact(kind, alias) for kind, alias in zip(types, aliases))
        self._execute(f"SELECT {cells} FROM ({inner}\n) AS t({', '.join(aliases)})", parameters)
        return self._stream([column_of(name, kind) for name, kind in zip(names, types)])

    def _selects(self, text):
        """
        Returns whether the statement only selects. DuckDB may make several statements of it: a PIVOT without the
        values of its columns first creates a temporary type with these values. Only a statement that selects can be a
        subquery.
        """
        try:
            return len(self.connection.extract_statements(f"SELECT * FROM ({text_of(text, meaningful(text))}\n)")) == 1
        except duckdb.Error:
            return False

    def _refuse_effects(self, kind, text):
        """Raises EngineFailure for a statement that does not select, unless it only reads."""
        if self.is_files:
            raise refuse("Files can only be read.")
        words = meaningful(text)
        if kind == EXPLAIN and self._explains_reading(text, words):
            return
        if kind == PRAGMA and len(words) > 1 and words[1][2].lower() in READABLE_PRAGMAS and "=" not in text:
            return
        raise refuse("This database can only be read.")

    def _explains_reading(self, text, words):
        """Returns whether the statement in an EXPLAIN only reads, because EXPLAIN ANALYZE executes it."""
        rest = [word for word in words[1:] if word[2].lower() != "analyze"]
        if rest and rest[0][2] == "(" and len(rest) > 1 and rest[1][2].lower() in ("format", "analyze"):
            closing = next((at for at, word in enumerate(rest) if word[2] == ")"), len(rest))
            rest = rest[closing + 1 :]
        if not rest:
            return False
        explained = self.connection.extract_statements(text_of(text, rest))
        return len(explained) == 1 and explained[0].type == SELECT

    def _start_directly(self, text, parameters):
        self._execute(text, parameters)
        described = self.connection.description or []
        if not described:
            self.end()
            return None
        return self._stream([column_of(one[0], one[1]) for one in described])

    def _execute(self, sql, parameters):
        return self.connection.execute(sql, parameters or None)

    def _stream(self, columns):
        self.portions = Portions(self.connection.fetchmany, by_cell=False)
        return columns

    def _explained(self, work):
        try:
            return work()
        except EngineFailure:
            raise
        except (duckdb.Error, RuntimeError, ValueError, TypeError, OverflowError) as error:
            # The position of the error is removed, because DuckDB counts it in a text that differs from the given
            # one.
            said = str(error).split("\n\nLINE ")[0]
            missing = NO_TABLE.search(said)
            raise refuse(self.unreadable.get(missing[1].lower(), said) if missing else said) from None


def refuse_log_elsewhere(place):
    """Refuses a write-ahead log that is a link: DuckDB opens the log by its name, and would follow
    the link.
    """
    try:
        found = os.stat(f"{place.name}.wal", dir_fd=place.folder, follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISREG(found.st_mode):
        raise EngineFailure("file_missing")


def is_open(identity) -> bool:
    """
    Returns whether this process has that file open. DuckDB first resolves the file's path and then opens the result,
    and the folder may be replaced in between.
    """
    for descriptor in range(3, MAX_DESCRIPTORS):
        with contextlib.suppress(OSError):
            found = os.fstat(descriptor)
            if (found.st_dev, found.st_ino) == identity:
                return True
    return False


def new_instance():
    instance = duckdb.connect(":memory:", config=CONFIGURATION)
    instance.execute(CLOSED)
    return instance


def quoted(text) -> str:
    return "'" + text.replace("'", "''") + "'"


def named(text) -> str:
    return '"' + text.replace('"', '""') + '"'


def meaningful(text) -> list:
    """Returns (start, end, text) of each token of a statement, without comments and the semicolons at its end."""
    data = text.encode()
    tokens = duckdb.tokenize(text)
    ends = [start for start, _ in tokens[1:]] + [len(data)]
    words = [
        (start, end, data[start:end].decode(errors="replace").strip())
        for (start, kind), end in zip(tokens, ends)
        if kind != duckdb.token_type.comment
    ]
    while words and words[-1][2] == ";":
        words.pop()
    return words


def text_of(text, words) -> str:
    """Returns the text from the first to the last of these tokens."""
    return text.encode()[words[0][0] : words[-1][1]].decode()
