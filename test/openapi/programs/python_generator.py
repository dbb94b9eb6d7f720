"""The main job, done with the client that openapi-generator makes as `python`. Prints the outcome."""

import json
import os
import time
from typing import Any

from generated import (
    AgentSessionsApi,
    ApiClient,
    Configuration,
    DatasourceConnection,
    DatasourcesApi,
    ExecutionEnvironmentsApi,
    ExecutionRequest,
    ExecutionsApi,
    LiveEditingApi,
    NotebooksApi,
    NotebookSessionsApi,
    RunsApi,
)
from generated.exceptions import NotFoundException
from generated.models import (
    AgentRun,
    CellExecution,
    CellResult,
    CodeRequest,
    ExecuteAll,
    ExecuteCells,
    FinalAnswer,
    NewCell,
    NewDatasource,
    NewNotebook,
    NewSerialization,
    OpenAgentSession,
    OpenNotebookSession,
    PromptRequest,
    SqliteConnection,
    SubmittedNotebookRun,
)

client = ApiClient(
    Configuration(
        host=os.environ["BASE_URL"], access_token=os.environ["TOKEN"], api_key={"workspace": os.environ["WORKSPACE"]}
    )
)
notebooks, sessions = NotebooksApi(client), NotebookSessionsApi(client)
environments, executions = ExecutionEnvironmentsApi(client), ExecutionsApi(client)
agents, datasources = AgentSessionsApi(client), DatasourcesApi(client)


def prompt_of(run_id: str) -> AgentRun:
    while True:
        run = RunsApi(client).get_run(run_id).actual_instance
        assert isinstance(run, AgentRun)
        if run.status != "running":
            return run
        time.sleep(0.02)


notebook = notebooks.create_notebook(
    NewNotebook(
        serialization=NewSerialization(
            cells=[
                NewCell(cell_id="numbers", code="numbers = [1, 2, 3]"),
                NewCell(cell_id="total", code="total = sum(numbers)\ntotal", options={"hide_code": True}),
            ]
        ),
        variables={"REGION": "eu"},
    )
)
environment_id = environments.create_execution_environment().environment_id
sessions.open_notebook_session(OpenNotebookSession(notebook_id=notebook.id, environment_id=environment_id))
while sessions.get_notebook_session(notebook.id).status != "ready":
    time.sleep(0.02)

runs: list[SubmittedNotebookRun] = []
for execution in (
    ExecuteCells(type="cells", cells=[CellExecution(cell_id="total")]),
    ExecuteAll(type="all", cache_mode="no-cache"),
):
    runs.append(executions.submit_execution(notebook.id, ExecutionRequest(execution), wait=60))
pages: list[str] = []
after: str | None = None
while True:
    page = executions.list_executions(notebook.id, after=after, limit=1)
    pages += [run.id for run in page.items]
    after = page.next_cursor
    if after is None:
        break
code = LiveEditingApi(client).execute_code(notebook.id, CodeRequest(code="print(total * 2)"))

agents.open_agent_session(OpenAgentSession(environment_id=environment_id, notebook_session_id=notebook.id))
prompted = agents.submit_prompt(notebook.id, PromptRequest(prompt="Are you there?"))
answered = prompt_of(prompted.run_id)

slug = "made-by-python-generator"
connection = DatasourceConnection(SqliteConnection(kind="sqlite", path="sales.sqlite"))
datasources.create_datasource(NewDatasource(slug=slug, connection=connection, name=None))
tested = datasources.test_datasource(slug)
deleted = datasources.delete_datasource(slug)

try:
    notebooks.get_notebook("nb_0")
    missing = None
except NotFoundException as error:
    missing = json.loads(error.body or "")["code"]
closed = sessions.close_notebook_session(notebook.id)
environment = environments.close_execution_environment(environment_id)


def parts_of(run: SubmittedNotebookRun | AgentRun) -> list[Any]:
    return [part.actual_instance for part in run.output.parts] if run.output is not None else []


print(
    json.dumps(
        {
            "cells": [
                [word for part in parts_of(run) if isinstance(part, CellResult) for word in (part.cell_id, part.status)]
                for run in runs
            ],
            "pages": [[run.id for run in runs].index(id) for id in pages],
            "inputs": [run.input.actual_instance.type for run in runs] + [answered.input.prompt],
            "printed": code.stdout,
            "answer": [part.markdown for part in parts_of(answered) if isinstance(part, FinalAnswer)],
            "tested": tested.ok,
            "deleted": deleted.deleted,
            "missing": missing,
            "closed": [closed.status, environment.status],
        }
    )
)
