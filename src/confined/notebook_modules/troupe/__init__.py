"""The server's services for notebooks.

    from troupe import datasource
    connection = datasource("sales")        # a DB-API 2.0 connection (PEP 249)
    pandas.read_sql("select * from orders where day > ?", connection, params=["2026-01-01"])

The datasource has to be selected for the notebook. Queries run on the server, which holds the credentials.
"""

from troupe.dbapi import Connection, connect

__all__ = ["Connection", "connect", "datasource"]


def datasource(slug: str) -> Connection:
    """Returns a connection to the datasource with this slug. Its first statement opens it and raises its errors."""
    return connect(slug)
