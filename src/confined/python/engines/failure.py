"""The failures of an embedded database."""


class EngineFailure(Exception):
    """`category`: a category of src/datasource/failure.ts, or `package_missing`. `detail`: the database's message about
    a statement, or the name of the package."""

    def __init__(self, category, detail=None):
        super().__init__(category)
        self.category, self.detail = category, detail


SEVERAL = "Exactly one statement is expected. Run them one after the other."


def refuse(detail) -> EngineFailure:
    """Returns a failure that is the statement's fault."""
    return EngineFailure("query", detail)
