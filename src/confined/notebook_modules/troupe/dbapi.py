"""DB-API 2.0 (PEP 249) over the server's datasources. Parameters are written `?`. Every statement commits itself."""

import collections.abc
import importlib.util
import itertools
import struct
import threading
import weakref

import msgspec

from troupe import channel, frames
from troupe.values import BY_CELL, RowReader, write_parameter

apilevel = "2.0"
threadsafety = 1
paramstyle = "qmark"


class Warning(Exception):
    pass


class Error(Exception):
    pass


class InterfaceError(Error):
    pass


class DatabaseError(Error):
    pass


class DataError(DatabaseError):
    pass


class OperationalError(DatabaseError):
    pass


class IntegrityError(DatabaseError):
    pass


class InternalError(DatabaseError):
    pass


class ProgrammingError(DatabaseError):
    pass


class NotSupportedError(DatabaseError):
    pass


ERRORS = {
    error.__name__: error
    for error in (InterfaceError, DatabaseError, DataError, OperationalError, IntegrityError, ProgrammingError)
}


def connect(slug) -> "Connection":
    if not isinstance(slug, str):
        raise InterfaceError("a datasource is named by its slug")
    return Connection(slug)


class _Column(msgspec.Struct, rename="camel"):
    name: str
    type: str
    by_cell: bool = False  # SQLite: each cell says what it is, and the type is only a hint


class _Answer(msgspec.Struct):
    error: dict[str, str] | None = None
    more: bool = False
    packs: bool = False  # whether the server can pack the rows of this result by columns
    count: int = 0  # of packed rows
    forms: list[str] | None = None  # of packed columns
    packed: memoryview | None = None
    changed: int | None = None
    kind: str | None = None
    columns: list[_Column] | None = None
    rows: msgspec.Raw = msgspec.Raw(b"[]")


PACKED_HEAD = struct.Struct("<cI")
_read_answer = msgspec.json.Decoder(_Answer).decode
_names = itertools.count(1)
_forgotten = []  # statements whose cursor was collected as garbage, possibly at a moment when asking the server is not allowed
_begun = weakref.WeakValueDictionary()  # the cursors of statements that the present command of the notebook has begun, by name


def _readable(read, json):
    try:
        return read(json)
    except msgspec.DecodeError as wrong:
        raise InternalError("what the database sent could not be read") from wrong


def _ask(method, **fields):
    body = channel.ask(method, **fields)
    if body[:1] == b"C":  # columns; src/datasource/query/row-wire.ts has the form
        end = PACKED_HEAD.size + PACKED_HEAD.unpack_from(body)[1]
        answer = _readable(_read_answer, body[PACKED_HEAD.size : end])
        answer.packed = body[end:]
    else:
        answer = _readable(_read_answer, body)
    if error := answer.error:
        raise ERRORS.get(error["kind"], DatabaseError)(error["message"])
    return answer


def _close_forgotten():
    while _forgotten:
        _ask("close", cursor=_forgotten.pop())


def _end_work(interrupted):
    """Ends the statements that a cancelled run has begun, wherever the interrupt has come, and those that nobody can read any more.
    The database would go on with them."""
    begun = list(_begun.values()) if interrupted else ()
    _begun.clear()
    for cursor in begun:
        cursor._drop()
    _close_forgotten()


channel.at_end_of_work(_end_work)


def _sequence(parameters):
    """Returns the parameters of a statement. Rejects a mapping, because its names would be sent,
    and a text, because its characters would be sent.
    """
    if parameters is None:
        return ()
    if isinstance(parameters, (collections.abc.Mapping, collections.abc.Set, str, bytes)):
        raise ProgrammingError("parameters are a list or tuple of values, and the statement marks them with ?")
    return parameters


def _can_read_columns():
    return all(importlib.util.find_spec(name) for name in ("numpy", "pyarrow"))


class Connection:
    """A connection. It holds no credentials and no socket, only the slug of a datasource."""

    Warning, Error, InterfaceError, DatabaseError = Warning, Error, InterfaceError, DatabaseError
    DataError, OperationalError, IntegrityError = DataError, OperationalError, IntegrityError
    InternalError, ProgrammingError, NotSupportedError = InternalError, ProgrammingError, NotSupportedError

    def __init__(self, slug):
        self.slug = slug
        self._open = True
        frames.support(Connection)

    def cursor(self) -> "Cursor":
        self._require_open()
        return Cursor(self)

    def find_kind(self) -> str:
        """Returns the kind of the datasource, such as "postgres"."""
        self._require_open()
        return _ask("describe", slug=self.slug).kind

    def execute(self, operation, parameters=()) -> "Cursor":
        """Executes the statement and returns its cursor."""
        return self.cursor().execute(operation, parameters)

    def commit(self):
        """Does nothing: every statement has committed itself."""
        self._require_open()

    def rollback(self):
        """There is nothing to take back: every statement has committed itself."""
        self._require_open()

    def close(self):
        self._open = False

    def _require_open(self):
        if not self._open:
            raise InterfaceError("the connection is closed")

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.close()

    def __repr__(self):
        return f"<datasource {self.slug!r}>"


class Cursor:
    """A cursor: one statement at a time, and its rows as they come from the server in batches."""

    arraysize = 1

    def __init__(self, connection):
        self.connection = connection
        self.description = None
        self.rowcount = -1
        self._reader = None
        self._kinds = []  # how the cells of each column are read
        self._rows = []
        self._next = 0
        self._remote = None  # the name of a statement that has not ended
        self._packs = False  # whether the rows can still be had as columns
        self._open = True

    def execute(self, operation, parameters=()) -> "Cursor":
        self._require_open()
        self.connection._require_open()
        self._drop()
        _close_forgotten()
        given = [write_parameter(value) for value in _sequence(parameters)]
        self._remote = next(_names)
        if threading.current_thread() is threading.main_thread():
            _begun[self._remote] = self
        self._ask("execute", slug=self.connection.slug, sql=operation, parameters=given)
        return self

    def executemany(self, operation, seq_of_parameters):
        counts = []
        for parameters in seq_of_parameters:
            self.execute(operation, parameters)
            counts.append(self.rowcount)
        self.description = None
        self.rowcount = -1 if -1 in counts else sum(counts)

    def fetchone(self):
        rows = self.fetchmany(1)
        return rows[0] if rows else None

    def fetchmany(self, size=None) -> list:
        self._require_result()
        self._packs = False
        size = self.arraysize if size is None else size
        while len(self._rows) - self._next < size and self._remote is not None:
            self._ask("fetch")
        rows = self._rows[self._next : self._next + size]
        self._next += len(rows)
        return rows

    def fetchall(self) -> list:
        self._require_result()
        self._packs = False
        parts = [self._rows[self._next :]]
        while self._remote is not None:
            self._rows, self._next = [], 0
            self._ask("fetch")
            parts.append(self._rows)
        self._rows, self._next = [], 0
        first, *others = parts
        for part in others:
            first += part
        return self._reader.unify(first)

    def fetch_columns(self):
        """Returns all rows as Columns, for a frame. Returns None if they can only be had as rows: the database cannot pack
        them, rows were fetched already, or the environment has no numpy or pyarrow."""
        self._require_result()
        if not self._packs or self._remote is None or not _can_read_columns():
            return None
        from troupe.columns import Columns

        columns = Columns(self._kinds)
        self._packs, self._rows, self._next = False, [], 0
        try:
            while self._remote is not None:
                answer = self._ask("fetch", form="columns")
                if answer.forms is not None:
                    _readable(lambda body: columns.add(answer.count, answer.forms, body), answer.packed)
        except BaseException:  # as in _ask
            self._drop()
            raise
        return columns

    def fetch_frames(self, size=None):
        """Yields the remaining rows as DataFrames of polars: one, or several of `size` rows."""
        if size is None and (columns := self.fetch_columns()):
            yield frames.polars_frame_of(self.description, columns)
        elif size is None:
            yield frames.polars_frame(self.description, self._kinds, self.fetchall())
        else:
            while rows := self.fetchmany(size):
                yield frames.polars_frame(self.description, self._kinds, rows)

    def close(self):
        self._drop()
        self._open = False

    def __del__(self):
        if self._remote is not None:
            _forgotten.append(self._remote)

    def setinputsizes(self, sizes):
        pass

    def setoutputsize(self, size, column=None):
        pass

    def _ask(self, method, **fields):
        try:
            answer = _ask(method, cursor=self._remote, **fields)
            self._take(answer)
            return answer
        except channel.TooLarge as excess:
            self._leave()  # the server was not asked, and has nothing to close
            raise DataError(f"the statement and its parameters are too large: {excess}") from None
        except BaseException:  # also after an interrupt: the server must not continue a query without a reader
            self._drop()
            raise

    def _take(self, answer):
        if not answer.more:
            self._leave()
            self.rowcount = -1 if answer.changed is None else answer.changed
        if columns := answer.columns:
            self._kinds = [BY_CELL if column.by_cell else column.type for column in columns]
            self._reader = RowReader(self._kinds)
            self._packs = answer.packs
            self.description = [(column.name, column.type, None, None, None, None, None) for column in columns]
        rows = _readable(self._reader.read, answer.rows) if self._reader else []
        self._rows = self._rows[self._next :] + rows if self._next < len(self._rows) else rows
        self._next = 0

    def _leave(self):
        """Returns the name of the statement, which is not asked for any more."""
        remote, self._remote = self._remote, None
        _begun.pop(remote, None)
        return remote

    def _drop(self):
        remote = self._leave()
        self.rowcount = -1
        self._rows, self._next, self.description, self._reader, self._packs = [], 0, None, None, False
        if remote is not None:
            _ask("close", cursor=remote)

    def _require_open(self):
        if not self._open:
            raise InterfaceError("the cursor is closed")

    def _require_result(self):
        self._require_open()
        if self.description is None:
            raise ProgrammingError("there is no result to fetch from")

    def __iter__(self):
        return self

    def __next__(self):
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.close()
