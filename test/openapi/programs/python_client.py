"""The main job, done with the client that openapi-python-client makes. Prints the outcome."""

import json
import os
import time
from typing import TypeVar

from generated.api.agent_sessions import open_agent_session, submit_prompt
from generated.api.datasources import create_datasource, delete_datasource, test_datasource
from generated.api.execution_environments import close_execution_environment, create_execution_environment
from generated.api.executions import list_executions, submit_execution
from generated.api.live_editing import execute_code
from generated.api.notebook_sessions import (
    close_notebook_session,
    get_notebook_session,
    open_notebook_session,
)
from generated.api.notebooks import create_notebook, get_notebook
from generated.api.runs import get_run
from generated.client import AuthenticatedClient
from generated.models import (
    AgentRun,
    AgentSession,
    CellExecution,
    CellResult,
    CodeRequest,
    CodeResult,
    ConnectionTest,
    Datasource,
    DeletedDatasource,
    Environment,
    ExecuteAll,
    ExecuteAllCacheMode,
    ExecuteCells,
    FinalAnswer,
    NewCell,
    NewCellOptions,
    NewDatasource,
    NewNotebook,
    NewNotebookVariables,
    NewSerialization,
    Notebook,
    NotebookRunPage,
    NotebookSession,
    NotebookSessionStatus,
    OpenAgentSession,
    OpenNotebookSession,
    Problem,
    PromptRequest,
    RunStatus,
    SqliteConnection,
    SubmittedAgentRun,
    SubmittedNotebookRun,
)
from generated.types import UNSET, Unset

T = TypeVar("T")
client = AuthenticatedClient(base_url=os.environ["BASE_URL"], token=os.environ["TOKEN"]).with_headers(
    {"Service-Workspace-Id": os.environ["WORKSPACE"]}
)


def must(kind: type[T], answer: object) -> T:
    if not isinstance(answer, kind):
        raise SystemExit(f"refused: {answer}")
    return answer


def prompt_of(run_id: str) -> AgentRun:
    while True:
        run = must(AgentRun, get_run.sync(run_id, client=client))
        if run.status != RunStatus.RUNNING:
            return run
        time.sleep(0.02)


hidden = NewCellOptions.from_dict({"hide_code": True})
notebook = must(
    Notebook,
    create_notebook.sync(
        client=client,
        body=NewNotebook(
            serialization=NewSerialization(
                cells=[
                    NewCell(cell_id="numbers", code="numbers = [1, 2, 3]"),
                    NewCell(cell_id="total", code="total = sum(numbers)\ntotal", options=hidden),
                ]
            ),
            variables=NewNotebookVariables.from_dict({"REGION": "eu"}),
        ),
    ),
)
environment_id = must(
    Environment, create_execution_environment.sync(client=client)
).environment_id
opening = OpenNotebookSession(notebook_id=notebook.id, environment_id=environment_id)
must(NotebookSession, open_notebook_session.sync(client=client, body=opening))
while (
    must(NotebookSession, get_notebook_session.sync(notebook.id, client=client)).status
    != NotebookSessionStatus.READY
):
    time.sleep(0.02)

runs: list[SubmittedNotebookRun] = []
executions: list[ExecuteAll | ExecuteCells] = [
    ExecuteCells(type_="cells", cells=[CellExecution(cell_id="total")]),
    ExecuteAll(type_="all", cache_mode=ExecuteAllCacheMode.NO_CACHE),
]
for execution in executions:
    runs.append(must(SubmittedNotebookRun, submit_execution.sync(notebook.id, client=client, body=execution, wait=60)))
pages: list[str] = []
after: str | None | Unset = UNSET
while after is not None:
    page = must(NotebookRunPage, list_executions.sync(notebook.id, client=client, after=after, limit=1))
    pages += [run.id for run in page.items]
    after = page.next_cursor
code = must(
    CodeResult,
    execute_code.sync(
        client=client, body=CodeRequest(code="print(total * 2)"), service_session_id=notebook.id
    ),
)

conversation = OpenAgentSession(environment_id=environment_id, notebook_session_id=notebook.id)
must(AgentSession, open_agent_session.sync(client=client, body=conversation))
prompted = must(
    SubmittedAgentRun,
    submit_prompt.sync(notebook.id, client=client, body=PromptRequest(prompt="Are you there?"))
)
answered = prompt_of(prompted.run_id)

slug = "made-by-python"
connection = SqliteConnection(kind="sqlite", path="sales.sqlite")
must(
    Datasource,
    create_datasource.sync(client=client, body=NewDatasource(slug=slug, connection=connection, name=None)),
)
tested = must(ConnectionTest, test_datasource.sync(slug, client=client))
deleted = must(DeletedDatasource, delete_datasource.sync(slug, client=client))

missing = get_notebook.sync("nb_0", client=client)
closed = must(NotebookSession, close_notebook_session.sync(notebook.id, client=client))
environment = must(Environment, close_execution_environment.sync(environment_id, client=client))


def parts_of(run: SubmittedNotebookRun | AgentRun) -> list[object]:
    return list(run.output.parts) if run.output is not None else []


print(
    json.dumps(
        {
            "cells": [
                [
                    word
                    for part in parts_of(run)
                    if isinstance(part, CellResult)
                    for word in (part.cell_id, part.status.value)
                ]
                for run in runs
            ],
            "pages": [[run.id for run in runs].index(id) for id in pages],
            "inputs": [run.input_.type_ for run in runs] + [answered.input_.prompt],
            "printed": code.stdout,
            "answer": [part.markdown for part in parts_of(answered) if isinstance(part, FinalAnswer)],
            "tested": tested.ok,
            "deleted": deleted.deleted,
            "missing": missing.code if isinstance(missing, Problem) else None,
            "closed": [closed.status.value, environment.status.value],
        }
    )
)
