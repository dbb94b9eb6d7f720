"""Datasources in `mo.sql`: frames from columns, and otherwise the frames that marimo makes of rows."""

from marimo._sql.utils import convert_to_output


def engine_of(general, connections):
    """Returns marimo's engine for these connections. `general`: its engine for all drivers."""

    class DatasourceEngine(general):
        """Runs one statement and makes a frame of its rows."""

        @staticmethod
        def is_compatible(var):
            return isinstance(var, connections)

        def execute(self, query, parameters=None):
            wanted = self.sql_output_format()
            if wanted == "native":
                return super().execute(query, parameters)
            with self._connection.cursor() as cursor:
                cursor.execute(query, parameters or ())
                if cursor.description is None:
                    return None
                names = [name for name, *_ in cursor.description]
                columns = cursor.fetch_columns() if len(set(names)) == len(names) else None
                rows = cursor.fetchall() if columns is None else None
            if columns is None:
                makers = {"to_polars": lambda: _polars_of_rows(names, rows), "to_pandas": lambda: _pandas_of_rows(names, rows)}
            else:
                makers = {"to_polars": lambda: _polars_of(names, columns), "to_pandas": lambda: _pandas_of(names, columns)}
            return convert_to_output(sql_output_format=wanted, **makers)

    return DatasourceEngine


def _polars_of(names, columns):
    import polars

    made = (polars.Series(one.to_arrow()) if one.has_values() else one.to_list() for one in columns.columns)
    return polars.DataFrame(dict(zip(names, made, strict=True)))


def _pandas_of(names, columns):
    from troupe.reading import frame_of

    return frame_of(names, columns, coerce_float=False)


def _polars_of_rows(names, rows):
    import polars

    data = {name: [] for name in names}
    for row in rows:
        for name, value in zip(names, row, strict=True):
            data[name].append(value)
    return polars.DataFrame(data)


def _pandas_of_rows(names, rows):
    import pandas

    return pandas.DataFrame(rows, columns=names)
