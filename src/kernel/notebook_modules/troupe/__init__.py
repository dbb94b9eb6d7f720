"""What notebooks can ask of their server.

    from troupe import datasource
    connection = datasource("sales")        # a DB-API 2.0 connection (PEP 249)
    pandas.read_sql("select * from orders where day > ?", connection, params=["2026-01-01"])

The datasource has to be selected for the notebook. Queries run on the server, which holds the credentials.
"""

from troupe.dbapi import Connection, connect

__all__ = ["Connection", "connect", "datasource"]


def datasource(slug: str) -> Connection:
    """A connection to the datasource of this slug. It is opened by its first statement, whose errors say what is wrong."""
    return connect(slug)
