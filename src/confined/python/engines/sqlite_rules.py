"""The permitted operations of statements on a SQLite database, which its authorizer checks while they are compiled:
allow-lists, so that additions of a later SQLite are refused.

SQLite does not always ask about expressions in the schema of a file (CHECK, DEFAULT, generated columns, indexes). So
functions that are not on the list are replaced, and modules that are not on it are removed. SQLite is also told not
to trust the schema, which then cannot use functions with effects outside of the database.
"""

import apsw

FUNCTIONS = frozenset(
    """
    -> ->> abs acos acosh asin asinh atan atan2 atanh avg bm25 ceil ceiling changes char coalesce concat concat_ws cos
    cosh count cume_dist current_date current_time current_timestamp date datetime degrees dense_rank exp first_value
    floor format fts5_get_locale fts5_insttoken fts5_locale geopoly_area geopoly_bbox geopoly_blob geopoly_ccw
    geopoly_contains_point geopoly_group_bbox geopoly_json geopoly_overlap geopoly_regular geopoly_svg geopoly_within
    geopoly_xform glob group_concat hex highlight if ifnull iif instr json json_array json_array_insert
    json_array_length json_error_position json_extract json_group_array json_group_object json_insert json_object
    json_patch json_pretty json_quote json_remove json_replace json_set json_type json_valid jsonb jsonb_array
    jsonb_array_insert jsonb_extract jsonb_group_array jsonb_group_object jsonb_insert jsonb_object jsonb_patch
    jsonb_remove jsonb_replace jsonb_set julianday lag last_insert_rowid last_value lead length like likelihood likely
    ln log log10 log2 lower ltrim match matchinfo max median min mod nth_value ntile nullif octet_length offsets
    optimize percent_rank percentile percentile_cont percentile_disc pi pow power printf quote radians random
    randomblob rank replace round row_number rtreecheck rtreedepth rtreenode rtrim sign sin sinh snippet
    sqlite_compileoption_get sqlite_compileoption_used sqlite_source_id sqlite_version sqrt strftime string_agg substr
    substring subtype sum tan tanh time timediff total total_changes trim trunc typeof unhex unicode unistr
    unistr_quote unixepoch unlikely upper zeroblob
    """.split()
)
# full text, rectangles and polygons are stored in ordinary tables of the same file
MODULES = frozenset("fts3 fts4 fts4aux fts5 fts5vocab geopoly json_each json_tree jsonb_each jsonb_tree rtree rtree_i32".split())
# modules that SQLite adds when a statement names them, so that they cannot be removed
MADE_ON_DEMAND = ("carray",)
# For each pragma, whether it takes an argument: the name of a table or an index.
PRAGMAS = {
    **dict.fromkeys("table_info table_xinfo table_list index_list index_info index_xinfo foreign_key_list".split(), True),
    **dict.fromkeys(
        """collation_list data_version function_list pragma_list encoding user_version schema_version application_id
        page_count page_size""".split(),
        False,
    ),
}
READS = {apsw.SQLITE_SELECT, apsw.SQLITE_READ, apsw.SQLITE_RECURSIVE}
CHANGES_ROWS = {apsw.SQLITE_INSERT, apsw.SQLITE_UPDATE, apsw.SQLITE_DELETE}
CHANGES_SCHEMA = {
    apsw.SQLITE_ALTER_TABLE, apsw.SQLITE_ANALYZE, apsw.SQLITE_CREATE_INDEX, apsw.SQLITE_CREATE_TABLE,
    apsw.SQLITE_CREATE_TEMP_INDEX, apsw.SQLITE_CREATE_TEMP_TABLE, apsw.SQLITE_CREATE_TEMP_TRIGGER,
    apsw.SQLITE_CREATE_TEMP_VIEW, apsw.SQLITE_CREATE_TRIGGER, apsw.SQLITE_CREATE_VIEW, apsw.SQLITE_DROP_INDEX,
    apsw.SQLITE_DROP_TABLE, apsw.SQLITE_DROP_TEMP_INDEX, apsw.SQLITE_DROP_TEMP_TABLE, apsw.SQLITE_DROP_TEMP_TRIGGER,
    apsw.SQLITE_DROP_TEMP_VIEW, apsw.SQLITE_DROP_TRIGGER, apsw.SQLITE_DROP_VIEW, apsw.SQLITE_REINDEX,
    apsw.SQLITE_SAVEPOINT, apsw.SQLITE_TRANSACTION,
}  # fmt: skip
OF_MODULES = {apsw.SQLITE_CREATE_VTABLE, apsw.SQLITE_DROP_VTABLE}


class Rules:
    """The authorizer of one connection. `writes`: whether statements may change the database."""

    def __init__(self, writes):
        self.writes = writes
        self.has_changed_connection = False  # whether a statement did more than read or change rows
        self.has_tried_to_write = False  # whether a statement tried to write although it must not

    def __call__(self, action, first, second, database, trigger) -> int:
        return apsw.SQLITE_OK if self._allows(action, first, second) else apsw.SQLITE_DENY

    def _allows(self, action, first, second):
        if action in READS:
            return True
        if action == apsw.SQLITE_FUNCTION:
            return (second or "").lower() in FUNCTIONS
        if action == apsw.SQLITE_PRAGMA:
            takes_argument = PRAGMAS.get((first or "").lower())
            return takes_argument is not None and (takes_argument or second is None)
        if not self.writes:
            self.has_tried_to_write = action in CHANGES_ROWS | CHANGES_SCHEMA | OF_MODULES
            return False
        if action in CHANGES_ROWS:
            return True
        self.has_changed_connection = True
        if action in OF_MODULES:
            return (second or "").lower() in MODULES
        return action in CHANGES_SCHEMA


def harden(connection):
    """Called before anything of the file's schema is read."""
    for option, value in (
        (apsw.SQLITE_DBCONFIG_DEFENSIVE, 1),
        (apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
        (apsw.SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0),
        (apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0),
        (apsw.SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0),
        (apsw.SQLITE_DBCONFIG_ENABLE_ATTACH_CREATE, 0),
        (apsw.SQLITE_DBCONFIG_ENABLE_ATTACH_WRITE, 0),
    ):
        connection.config(option, value)
    for limit, most in (
        (apsw.SQLITE_LIMIT_ATTACHED, 0),
        (apsw.SQLITE_LIMIT_WORKER_THREADS, 0),
        (apsw.SQLITE_LIMIT_SQL_LENGTH, 1_000_000),
        (apsw.SQLITE_LIMIT_EXPR_DEPTH, 1000),
        (apsw.SQLITE_LIMIT_TRIGGER_DEPTH, 100),
        (apsw.SQLITE_LIMIT_VDBE_OP, 25_000_000),
    ):
        connection.limit(limit, most)
    connection.drop_modules(MODULES)
    for name in MADE_ON_DEMAND:
        connection.create_module(name, Refused, eponymous=True)
    for name, count in find_functions():
        connection.create_scalar_function(name, refused(name), count, flags=apsw.SQLITE_DIRECTONLY)


class Refused:
    """A virtual table module of which no table can be created or used."""

    @staticmethod
    def Create(*_):
        raise apsw.AuthError("not authorized to use this module")

    Connect = Create


def find_functions(known=[]) -> list:
    """Returns (name, number of arguments) of the functions that this SQLite has and the list does not allow."""
    if not known:
        with_all = apsw.Connection(":memory:")
        rows = with_all.execute("SELECT DISTINCT name, narg FROM pragma_function_list").fetchall()
        known += [row for row in rows if row[0] not in FUNCTIONS]
        with_all.close()
    return known


def refused(name):
    def refuse(*_):
        raise apsw.AuthError(f"not authorized to use function: {name}")

    return refuse
