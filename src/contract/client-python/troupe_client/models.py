"""
The JSON shapes of the API. `npm run python-client` writes this file from the OpenAPI document: do not edit it.

A member that a response may lack is `UNSET` then. Members that this version does not know are left out.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType, field


class ActorCount(Struct):
    kind: str
    state: str
    count: int


class ActorEvent(Struct):
    type: str
    at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]


class ActorLeftData(Struct):
    kind: str
    id: str
    state: Annotated[str, Meta(description='The last state of the actor, as a path.')]
    presence: Annotated[
        Literal['ended', 'failed', 'stored', 'deleted'],
        Meta(
            description='Whether the actor ended, failed because of an error of the server, is only in the store, or was deleted.'
        ),
    ]


class ActorLeftEvent(Struct, tag_field='type', tag='actor.left'):
    type: ClassVar[Literal['actor.left']] = 'actor.left'
    time: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
    data: ActorLeftData
    missed: (
        Annotated[
            bool,
            Meta(
                description='The event happened while you were disconnected, after the event that you named.'
            ),
        ]
        | UnsetType
    ) = UNSET
    id: str = ''


class ActorLink(Struct):
    """
    Another actor that is related to this one.
    """

    kind: str
    id: str


class ActorMovedData(Struct):
    kind: str
    id: str
    machine: Annotated[
        str,
        Meta(
            description='The id of the statechart of the actor, for `GET /api/v3/charts/{machine}`.'
        ),
    ]
    from_: str | None = field(name='from')
    to: Annotated[
        str,
        Meta(
            description='The state after the event; unchanged when only the context of the actor has changed.'
        ),
    ]
    since: Annotated[str, Meta(description='When the actor last changed its state.')]
    revision: Annotated[int, Meta(description='How many transitions were stored.')]
    links: list[ActorLink]
    events: Annotated[
        list[str],
        Meta(
            description='The types of the events that the actor took, at most the last 16; empty when the actor came into memory.'
        ),
    ]


class ActorMovedEvent(Struct, tag_field='type', tag='actor.moved'):
    type: ClassVar[Literal['actor.moved']] = 'actor.moved'
    time: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
    data: ActorMovedData
    missed: (
        Annotated[
            bool,
            Meta(
                description='The event happened while you were disconnected, after the event that you named.'
            ),
        ]
        | UnsetType
    ) = UNSET
    id: str = ''


class ActorRefusal(Struct):
    type: Annotated[str, Meta(description='The type of the event.')]
    code: Annotated[str, Meta(description='The code of the error.')]
    title: str
    advice: str | None


class ActorRefusedData(Struct):
    kind: str
    id: str
    state: Annotated[str, Meta(description='The state that refused, as a path.')]
    event: Annotated[str, Meta(description='The type of the event.')]
    code: Annotated[str, Meta(description='The code of the error.')]
    count: Annotated[
        int,
        Meta(
            description='How often the command was refused since the last event about this refusal.'
        ),
    ]
    title: str
    advice: str | None


class ActorRefusedEvent(Struct, tag_field='type', tag='actor.refused'):
    type: ClassVar[Literal['actor.refused']] = 'actor.refused'
    time: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
    data: ActorRefusedData
    missed: (
        Annotated[
            bool,
            Meta(
                description='The event happened while you were disconnected, after the event that you named.'
            ),
        ]
        | UnsetType
    ) = UNSET
    id: str = ''


class ActorTrailEntry(Struct):
    at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
    type: Annotated[str, Meta(description='The type of the event.')]
    from_: Annotated[str, Meta(description='The state before the event, as a path.')] = field(
        name='from'
    )
    to: Annotated[str, Meta(description='The state after the event.')]
    refused: (
        Annotated[
            str,
            Meta(description='The code of the error with which the event was refused.'),
        ]
        | UnsetType
    ) = UNSET


class ActorsCountsData(Struct):
    counts: Annotated[
        list[ActorCount], Meta(description='The actors in memory, by kind and state.')
    ]
    moved: Annotated[
        list[str],
        Meta(
            description='The kinds whose actors have moved or left since the last counts.'
        ),
    ]


class ActorsCountsEvent(Struct, tag_field='type', tag='actors.counts'):
    type: ClassVar[Literal['actors.counts']] = 'actors.counts'
    time: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
    data: ActorsCountsData
    missed: (
        Annotated[
            bool,
            Meta(
                description='The event happened while you were disconnected, after the event that you named.'
            ),
        ]
        | UnsetType
    ) = UNSET
    id: str = ''


class ActorsReplayedData(Struct):
    pass


class ActorsReplayedEvent(Struct, tag_field='type', tag='actors.replayed'):
    type: ClassVar[Literal['actors.replayed']] = 'actors.replayed'
    time: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
    data: ActorsReplayedData
    missed: (
        Annotated[
            bool,
            Meta(
                description='The event happened while you were disconnected, after the event that you named.'
            ),
        ]
        | UnsetType
    ) = UNSET
    id: str = ''


class ActorsResyncRequiredData(Struct):
    reason: Literal['slow_subscriber', 'server_stopping']


class ActorsResyncRequiredEvent(Struct, tag_field='type', tag='actors.resync-required'):
    type: ClassVar[Literal['actors.resync-required']] = 'actors.resync-required'
    time: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
    data: ActorsResyncRequiredData
    missed: (
        Annotated[
            bool,
            Meta(
                description='The event happened while you were disconnected, after the event that you named.'
            ),
        ]
        | UnsetType
    ) = UNSET
    id: str = ''


class ActorsSnapshotData(Struct):
    counts: Annotated[
        list[ActorCount], Meta(description='The actors in memory, by kind and state.')
    ]


class ActorsSnapshotEvent(Struct, tag_field='type', tag='actors.snapshot'):
    type: ClassVar[Literal['actors.snapshot']] = 'actors.snapshot'
    time: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
    data: ActorsSnapshotData
    resumed: (
        Annotated[
            bool,
            Meta(
                description='The events that you have missed follow, marked with `missed`.'
            ),
        ]
        | UnsetType
    ) = UNSET
    id: str = ''


class AddPackages(Struct):
    requirements: list[str]


class AgentConfig(Struct):
    model: str | None
    instructions: str | None


class AgentContext(Struct):
    datasource_slugs: Annotated[list[str], Meta(description='The datasources that the agent may query, with the rights of the member who prompts it. An agent that is bound to a notebook may also query those that are selected for the notebook.')] = field(
        name='datasourceSlugs'
    )


class AgentSessionGrant(Struct):
    user_id: str = field(name='userId')
    created_by: Annotated[str, Meta(description='The id of the user who made this resource.')] = field(
        name='createdBy'
    )
    created_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='createdAt'
    )


class AgentSessionGrantList(Struct):
    items: list[AgentSessionGrant]


class AgentSessionStatusData(Struct):
    status: Literal['ready', 'busy', 'closed']
    reason: (
        Annotated[str, Meta(description='A code in snake_case that gives more detail.')]
        | UnsetType
    ) = UNSET


class AgentSessionStatusEvent(Struct, tag_field='type', tag='session.status'):
    type: ClassVar[Literal['session.status']] = 'session.status'
    session_id: str = field(name='sessionId')
    time: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
    data: AgentSessionStatusData
    run_id: str | UnsetType = field(name='runId', default=UNSET)
    missed: (
        Annotated[
            bool,
            Meta(
                description='The event happened while you were disconnected, after the event that you named.'
            ),
        ]
        | UnsetType
    ) = UNSET
    id: str = ''


class AgentSessionSummary(Struct):
    session_id: Annotated[str, Meta(description='The id of the conversation, or of its notebook when it is bound to one.')] = field(
        name='sessionId'
    )
    environment_id: str | None = field(name='environmentId')
    notebook_session_id: str | None = field(name='notebookSessionId')
    owner_id: Annotated[str, Meta(description='The user who owns the conversation: its creator (`createdBy`), until the conversation is handed over.')] = field(
        name='ownerId'
    )
    created_by: Annotated[str, Meta(description='The id of the user who made this resource.')] = field(
        name='createdBy'
    )
    status: Literal['ready', 'busy', 'closed']
    config: AgentConfig
    context: AgentContext
    current_run_id: str | None = field(name='currentRunId')
    created_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='createdAt'
    )
    updated_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='updatedAt'
    )
    closed_by: (
        Annotated[
            str,
            Meta(
                description='The id of the user who closed this resource. Absent when it has ended by itself, or when the user is not known.'
            ),
        ]
        | UnsetType
    ) = field(name='closedBy', default=UNSET)


class AssistantMessage(Struct, tag_field='type', tag='assistant-message'):
    type: ClassVar[Literal['assistant-message']] = 'assistant-message'
    text: str


class AuditedQuery(Struct):
    """
    Present for `datasource.query`.
    """

    by: Literal['notebook', 'agent']
    session_id: str | None = field(name='sessionId')
    statements: Annotated[
        int,
        Meta(
            description='The number of similar statements, within about one second, that the entry summarises.'
        ),
    ]
    rows: Annotated[
        int, Meta(description='How many rows the statements returned in total.')
    ]
    duration_ms: Annotated[int, Meta(description='How many milliseconds the statements took in total, until their last rows were read.')] = field(
        name='durationMs'
    )


class ServiceAccount(Struct):
    """
    The key file of a service account, as Google gives it.
    """

    client_email: str
    private_key: Annotated[str, Meta(description='Unencrypted RSA private key in PEM.')]
    token_uri: str | UnsetType = UNSET
    type: Literal['service_account'] | UnsetType = UNSET
    project_id: str | UnsetType = UNSET
    private_key_id: str | UnsetType = UNSET
    client_id: str | UnsetType = UNSET
    auth_uri: str | UnsetType = UNSET
    auth_provider_x509_cert_url: str | UnsetType = UNSET
    client_x509_cert_url: str | UnsetType = UNSET
    universe_domain: str | UnsetType = UNSET


class BigqueryConnection(Struct, tag_field='kind', tag='bigquery'):
    """
    A BigQuery project, with a service account.
    """

    kind: ClassVar[Literal['bigquery']] = 'bigquery'
    project: Annotated[
        str, Meta(description='Project that queries run in and are billed to.')
    ]
    dataset: Annotated[
        str, Meta(description='Dataset that is used where a statement names none.')
    ]
    service_account: Annotated[
        ServiceAccount,
        Meta(description='The key file of a service account, as Google gives it.'),
    ]
    location: (
        Annotated[
            str, Meta(description='Where queries run; that of their data when unset.')
        ]
        | UnsetType
    ) = UNSET
    url: (
        Annotated[
            str,
            Meta(
                description='Base URL of the service, if it is not the usual one. It has a scheme, a host and a port, and nothing else.'
            ),
        ]
        | UnsetType
    ) = UNSET
    ca_certificate: (
        Annotated[
            str,
            Meta(
                description='Certificates in PEM. They replace the certificates of the system when the certificate of the database server is checked.'
            ),
        ]
        | UnsetType
    ) = UNSET


class BrowserPage(Struct):
    url: Annotated[
        str,
        Meta(
            description='The path of the page. It can be opened in a browser once, within a minute. The browser that opens it acts in your name.'
        ),
    ]
    access: Literal['edit', 'interact', 'view']
    expires_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='expiresAt'
    )


class CallFunction(Struct):
    namespace: Annotated[
        str, Meta(description='The id of the element to which the function belongs.')
    ]
    function_name: str = field(name='functionName')
    args: Annotated[dict[str, Any], Meta(description='The arguments by their names.')]
    timeout_s: int | None | UnsetType = field(name='timeoutS', default=UNSET)


class CancellationAccepted(Struct):
    run_id: str = field(name='runId')
    status: Annotated[
        Literal['cancelling'],
        Meta(
            description='A value of this response only: the run itself is `running` until it has ended.'
        ),
    ]


class Cell(Struct):
    cell_id: str
    code: str
    options: dict[str, Any]


class CellConfig(Struct):
    """
    Changes the cell's settings, which are saved with the notebook.
    """

    disabled: bool | UnsetType = UNSET
    hide_code: bool | UnsetType = field(name='hideCode', default=UNSET)
    column: int | None | UnsetType = UNSET
    name: str | None | UnsetType = UNSET
    expand_output: bool | UnsetType = field(name='expandOutput', default=UNSET)


class CellConfigOutput(Struct):
    """
    Changes the cell's settings, which are saved with the notebook.
    """

    disabled: bool | UnsetType = UNSET
    hide_code: bool | UnsetType = field(name='hideCode', default=UNSET)
    column: int | None | UnsetType = UNSET
    name: str | None | UnsetType = UNSET
    expand_output: bool | UnsetType = field(name='expandOutput', default=UNSET)


class CellExecution(Struct):
    cell_id: Annotated[str, Meta(description='Unique within the notebook; without control characters, and not `__scratch__`.')] = field(
        name='cellId'
    )
    version: int | None | UnsetType = UNSET
    code: str | None | UnsetType = UNSET
    config: CellConfig | None | UnsetType = UNSET


class CellExecutionOutput(Struct):
    cell_id: Annotated[str, Meta(description='Unique within the notebook; without control characters, and not `__scratch__`.')] = field(
        name='cellId'
    )
    version: int | None | UnsetType = UNSET
    code: str | None | UnsetType = UNSET
    config: CellConfigOutput | None | UnsetType = UNSET


class CellSettings(Struct):
    disabled: bool
    hide_code: bool = field(name='hideCode')
    column: int | None
    expand_output: bool = field(name='expandOutput')


class CellSettingsChange(Struct):
    """
    Omitted settings are not changed.
    """

    disabled: bool | UnsetType = UNSET
    hide_code: bool | UnsetType = field(name='hideCode', default=UNSET)
    column: int | None | UnsetType = UNSET
    expand_output: bool | UnsetType = field(name='expandOutput', default=UNSET)


class CellsDeletedData(Struct):
    cell_ids: list[str] = field(name='cellIds')


class CellsDeletedEvent(Struct, tag_field='type', tag='cells-deleted'):
    type: ClassVar[Literal['cells-deleted']] = 'cells-deleted'
    session_id: str = field(name='sessionId')
    time: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
    data: CellsDeletedData
    run_id: str | UnsetType = field(name='runId', default=UNSET)
    missed: (
        Annotated[
            bool,
            Meta(
                description='The event happened while you were disconnected, after the event that you named.'
            ),
        ]
        | UnsetType
    ) = UNSET
    id: str = ''


class ChangedCell(Struct):
    cell_id: str = field(name='cellId')
    version: int | None


class ChangedCells(Struct):
    session_id: str = field(name='sessionId')
    updated_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='updatedAt'
    )
    cells: Annotated[
        list[ChangedCell],
        Meta(
            description='For each change, in the order of the request, the cell that the change made or changed. `version` is the version of the cell after the whole request; null when the cell was deleted.'
        ),
    ]


class Chart(Struct):
    machine: str
    version: Annotated[str, Meta(description='A text that changes with the chart.')]
    root: Annotated[
        dict[str, Any],
        Meta(
            description='A state: `id`, `name`, `type` (`atomic`, `compound`, `parallel` or `final`), `initial`, `tags`, and `states`, with the same members. `refuses` has the codes of errors by event, `runs` the work while the state is active, and `transitions` has `event`, `targets`, `guard` and `actions`.'
        ),
    ]


class ClickhouseConnection(Struct, tag_field='kind', tag='clickhouse'):
    """
    A ClickHouse server or ClickHouse Cloud, over its HTTP interface.
    """

    kind: ClassVar[Literal['clickhouse']] = 'clickhouse'
    url: Annotated[
        str,
        Meta(
            description='Base URL of the server: scheme, host and port, nothing else. With `https` the certificate is checked; `http` is not encrypted.'
        ),
    ]
    database: Annotated[
        str, Meta(description='Database that is used where a statement names none.')
    ]
    user: Annotated[str, Meta(description='Name of the account in the database.')]
    password: Annotated[
        str, Meta(description='Password of the account; empty when it has none.')
    ]
    ca_certificate: (
        Annotated[
            str,
            Meta(
                description='Certificates in PEM. They replace the certificates of the system when the certificate of the database server is checked.'
            ),
        ]
        | UnsetType
    ) = UNSET


class CodeError(Struct):
    type: str
    message: str
    cell_id: str | None = field(name='cellId')


class CodeFigure(Struct):
    mimetype: str
    data: Any


class CodeRequest(Struct):
    code: Annotated[
        str, Meta(description='Python; `await` is allowed at the top level.')
    ]
    keep: (
        Annotated[
            bool,
            Meta(
                description='Whether the names that the code defines are kept for later calls with `keep`. These calls may redefine the names, which end with the kernel. A cell that later defines the same name replaces the value. Default: false.'
            ),
        ]
        | UnsetType
    ) = UNSET
    timeout_s: (
        Annotated[
            int,
            Meta(
                description='How many seconds the work may take after it begins. Waiting for the kernel of a sleeping session and checking new code do not count. At the deadline the work is interrupted as by a cancellation, and fails with the code `timed_out`. No deadline when omitted.'
            ),
        ]
        | UnsetType
    ) = field(name='timeoutS', default=UNSET)
    tool_call_id: str | None | UnsetType = UNSET


class CompleteCode(Struct):
    code: Annotated[str, Meta(description='The code of the cell up to the cursor.')]
    cell_id: str | None | UnsetType = field(name='cellId', default=UNSET)


class Completion(Struct):
    name: str
    type: Annotated[
        str, Meta(description='Such as `function`, `module` or `instance`.')
    ]
    info: str | None


class Completions(Struct):
    prefix_length: Annotated[int, Meta(description='The number of characters before the cursor that an option replaces.')] = field(
        name='prefixLength'
    )
    options: list[Completion]
    is_incomplete: Annotated[bool, Meta(description='Whether options may be missing: the kernel took too long, or there are too many options.')] = field(
        name='isIncomplete'
    )


class ConsoleOutputData(Struct):
    cell_id: str = field(name='cellId')
    channel: Literal['stdout', 'stderr']
    text: str


class ConsoleOutputEvent(Struct, tag_field='type', tag='console-output'):
    type: ClassVar[Literal['console-output']] = 'console-output'
    session_id: str = field(name='sessionId')
    time: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
    data: ConsoleOutputData
    run_id: str | UnsetType = field(name='runId', default=UNSET)
    missed: (
        Annotated[
            bool,
            Meta(
                description='The event happened while you were disconnected, after the event that you named.'
            ),
        ]
        | UnsetType
    ) = UNSET
    id: str = ''


class ConversationTarget(Struct):
    """
    A prompt in an agent conversation that the owner of the job can use. An instant at which the conversation answers another prompt is skipped with the reason `conversation_busy`, and one at which it is closed with `conversation_closed`. Only members who can read the conversation see the job.
    """

    agent_session_id: str = field(name='agentSessionId')
    prompt: str


class ConversationTargetOutput(Struct):
    """
    A prompt in an agent conversation that the owner of the job can use. An instant at which the conversation answers another prompt is skipped with the reason `conversation_busy`, and one at which it is closed with `conversation_closed`. Only members who can read the conversation see the job.
    """

    agent_session_id: str = field(name='agentSessionId')
    prompt: str


class CreateCell(Struct, tag_field='type', tag='create-cell'):
    """
    Adds a cell: at the end, or at the place that `before` or `after` names. Without `cellId` the server chooses an id.
    """

    type: ClassVar[Literal['create-cell']] = 'create-cell'
    code: Annotated[str, Meta(description='Python.')]
    cell_id: str | None | UnsetType = field(name='cellId', default=UNSET)
    name: str | None | UnsetType = UNSET
    config: CellSettingsChange | None | UnsetType = UNSET
    before: str | None | UnsetType = UNSET
    after: str | None | UnsetType = UNSET


class CreatedHookIn(Struct):
    id: str
    job_id: str = field(name='jobId')
    name: str | None
    url: Annotated[
        str,
        Meta(
            description='Where other programs post to fire the job. A path below the address of the server, or a whole URL if the setting `TROUPE_PUBLIC_URL` is set.'
        ),
    ]
    created_by: Annotated[str, Meta(description='The id of the user who made this resource.')] = field(
        name='createdBy'
    )
    created_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='createdAt'
    )
    secret: Annotated[
        str,
        Meta(
            description='The secret of the hook, for a bearer token or for signatures. It is shown only in this answer.'
        ),
    ]


class CronSchedule(Struct):
    cron: Annotated[
        str,
        Meta(
            description='Five fields (minute, hour, day of the month, month, day of the week), six with seconds in front, or one of `@hourly`, `@daily`, `@weekly`, `@monthly` and `@yearly`. Months and days of the week may have their English names. The times are those of `timeZone`.'
        ),
    ]


class CronScheduleOutput(Struct):
    cron: Annotated[
        str,
        Meta(
            description='Five fields (minute, hour, day of the month, month, day of the week), six with seconds in front, or one of `@hourly`, `@daily`, `@weekly`, `@monthly` and `@yearly`. Months and days of the week may have their English names. The times are those of `timeZone`.'
        ),
    ]


class DatabricksConnection(Struct, tag_field='kind', tag='databricks'):
    """
    A SQL warehouse of a Databricks workspace, over its Statement Execution API.
    """

    kind: ClassVar[Literal['databricks']] = 'databricks'
    host: Annotated[str, Meta(description='Name or IP address of the server.')]
    http_path: Annotated[
        str,
        Meta(
            description='HTTP path of a SQL warehouse, as its connection details show it.'
        ),
    ]
    token: Annotated[
        str, Meta(description='Access token of a user or a service principal.')
    ]
    catalog: Annotated[
        str, Meta(description='Catalog that is used where a statement names none.')
    ]
    schema: Annotated[
        str, Meta(description='Schema that is used where a statement names none.')
    ]
    port: (
        Annotated[int, Meta(description='TCP port of the server, usually 443.')]
        | UnsetType
    ) = UNSET
    ca_certificate: (
        Annotated[
            str,
            Meta(
                description='Certificates in PEM. They replace the certificates of the system when the certificate of the database server is checked.'
            ),
        ]
        | UnsetType
    ) = UNSET


class DatasourceGrant(Struct):
    subject: str
    created_by: Annotated[str, Meta(description='The id of the user who made this resource.')] = field(
        name='createdBy'
    )
    created_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='createdAt'
    )


class DatasourceGrantList(Struct):
    items: list[DatasourceGrant]


class DatasourceWarning(Struct):
    code: Annotated[
        Literal['account_may_write', 'account_rights_unknown'],
        Meta(
            description='`account_may_write`: according to the database, the account may change something. `account_rights_unknown`: the database cannot tell, or was not asked.'
        ),
    ]
    message: str


class DeleteCell(Struct, tag_field='type', tag='delete-cell'):
    """
    Deletes a cell, and its variables from the kernel.
    """

    type: ClassVar[Literal['delete-cell']] = 'delete-cell'
    cell_id: Annotated[str, Meta(description='Unique within the notebook; without control characters, and not `__scratch__`.')] = field(
        name='cellId'
    )
    version: int | None | UnsetType = UNSET


class DeletedDatasource(Struct):
    slug: str
    deleted: bool


class DependentCell(Struct):
    cell_id: str = field(name='cellId')
    status: Literal['success', 'error', 'stopped', 'cancelled', 'interrupted', 'disabled']


class DuckdbConnection(Struct, tag_field='kind', tag='duckdb'):
    """
    A DuckDB database that is a file of the workspace. It is read, never written.
    """

    kind: ClassVar[Literal['duckdb']] = 'duckdb'
    path: Annotated[
        str,
        Meta(
            description='The database file, from the folder of the workspace’s files. It must exist.'
        ),
    ]


class ElementFailure(Struct):
    element_id: str = field(name='elementId')
    reason: str
    is_set: Annotated[bool, Meta(description='False when the element refused the value, true when its `on_change` handler failed.')] = field(
        name='isSet'
    )


class Environment(Struct):
    environment_id: str = field(name='environmentId')
    status: Literal['open', 'closed']
    notebook_session_id: str | None = field(name='notebookSessionId')
    agent_session_ids: Annotated[list[str], Meta(description='The open conversations in the environment that you can read. Other open conversations keep the environment from being closed, too.')] = field(
        name='agentSessionIds'
    )
    created_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='createdAt'
    )
    updated_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='updatedAt'
    )


class EnvironmentPage(Struct):
    items: list[Environment]
    next_cursor: (
        Annotated[
            str,
            Meta(
                description='The `after` of the next page; null when there are no more items.'
            ),
        ]
        | None
    ) = field(name='nextCursor')


ErrorCode: TypeAlias = Annotated[
    str,
    Meta(
        description='Why a request was refused. A published code never changes; later versions may add codes.\n\n- `malformed_json`: The body is not valid JSON\n- `invalid_request`: The request does not match the schema\n- `invalid_cursor`: The cursor does not belong to this list\n- `missing_workspace`: The Service-Workspace-Id header is missing\n- `missing_session`: The Service-Session-Id header is missing\n- `duplicate_cell`: A cell id appears twice\n- `unknown_cell`: The notebook has no such cell\n- `unknown_model`: There is no model with this name\n- `unreadable_notebook`: The file is not a readable notebook\n- `unauthenticated`: A valid access token is required\n- `missing_scope`: The access token lacks a required scope\n- `no_workspace`: You are a member of no workspace\n- `role_too_low`: Your role in this workspace does not allow this\n- `conversation_read_only`: You may read this conversation, but not change it\n- `conversation_not_shared`: The conversation of this notebook is not shared with you\n- `cross_origin`: A request from another origin may not change this\n- `not_found`: The resource does not exist, or you may not see it\n- `method_not_allowed`: The resource does not support this method\n- `stale_update`: The resource has changed since it was read\n- `session_open`: A session is open on this notebook\n- `session_exists`: A live session with this id already exists\n- `session_busy`: The session is busy\n- `session_not_ready`: The session is not ready\n- `session_failed`: The session has failed\n- `session_closed`: The session is closed\n- `session_not_editable`: The session is in run mode and cannot be edited\n- `structural_error`: The notebook has structural errors\n- `notebook_not_ready`: The notebook session is not ready\n- `binding_differs`: The conversation is bound to another notebook, or to none\n- `environment_differs`: The notebook session belongs to another environment\n- `no_model_configured`: No model is configured\n- `model_not_configured`: The provider of this model is not configured\n- `environment_occupied`: The environment already has an active notebook session\n- `environment_in_use`: Sessions are still attached to the environment\n- `environment_closed`: The environment is closed\n- `run_finished`: The run has already finished\n- `run_in_progress`: The run has not ended yet\n- `job_running`: An occurrence of the job is in progress\n- `hook_paused`: The hook is paused\n- `datasource_changed`: Another request changed the datasource meanwhile\n- `already_exists`: A datasource or a member with this name already exists\n- `packages_disabled`: This server installs no packages\n- `nodes_disabled`: This server has no kernel nodes\n- `packages_not_installed`: The packages could not be installed\n- `installation_in_progress`: Packages are being installed in this workspace\n- `unwritable_notebook`: The notebook cannot be written in this format\n- `workspace_in_use`: Sessions are open in the workspace\n- `last_workspace`: You own no other workspace\n- `last_owner`: A workspace must keep at least one owner\n- `idempotency_key_reused`: The idempotency key was used with another request\n- `idempotency_in_progress`: The first request with this idempotency key is still running\n- `key_in_use`: The key is in use\n- `not_a_file`: The path does not lead to a file\n- `file_inaccessible`: The permissions of the file do not allow this\n- `precondition_failed`: The resource is not in the state that If-Match or If-None-Match asks for\n- `body_too_large`: The request body is too large\n- `unsupported_media_type`: The request body must be application/json\n- `range_not_satisfiable`: The requested range lies outside of the content\n- `too_many_attempts`: Too many wrong access tokens\n- `quota_exceeded`: The workspace has reached a quota\n- `internal`: The server failed to process the request\n- `record_damaged`: A stored record is damaged on the disk\n- `unavailable`: The server cannot accept this request now\n- `read_only`: The server only reads (TROUPE_READ_ONLY)\n- `storage_full`: The disk of the server is full\n- `file_quota_exceeded`: The files of the workspace have reached their quota\n- `at_capacity`: The server has reached its session limit'
    ),
]


class EventLoopState(Struct):
    busy_seconds: Annotated[float, Meta(description='Time in which the event loop was busy, since the start.')] = field(
        name='busySeconds'
    )
    delay_p99_ms: float | None = field(name='delayP99Ms')
    delay_max_ms: float | None = field(name='delayMaxMs')


class EventTicket(Struct):
    ticket: Annotated[str, Meta(description='A secret that opens one stream, once.')]
    url: Annotated[str, Meta(description='The path of the stream, with the ticket.')]
    expires_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='expiresAt'
    )


class ExecuteAll(Struct, tag_field='type', tag='all'):
    type: ClassVar[Literal['all']] = 'all'
    cache_mode: (
        Annotated[
            Literal['default', 'no-cache', 'no-store'],
            Meta(
                description='The requested cells always run. `default`: only dependencies that are stale run again. `no-cache`: dependencies run again. `no-store`: as `no-cache`, and the output is streamed but not saved with the run.'
            ),
        ]
        | UnsetType
    ) = field(name='cacheMode', default=UNSET)
    structural_errors: (
        Annotated[
            Literal['refuse', 'skip'],
            Meta(
                description='Treatment of structural errors in the requested cells or the cells that they depend on: names that several cells define, and cycles. `refuse`, the default: 409, and nothing runs. `skip`: the other cells run; cells with an error, and cells that need them, end as `error`, with the reason as their output.'
            ),
        ]
        | UnsetType
    ) = field(name='structuralErrors', default=UNSET)
    expected_updated_at: str | None | UnsetType = field(
        name='expectedUpdatedAt', default=UNSET
    )
    timeout_s: (
        Annotated[
            int,
            Meta(
                description='How many seconds the work may take after it begins. Waiting for the kernel of a sleeping session and checking new code do not count. At the deadline the work is interrupted as by a cancellation, and fails with the code `timed_out`. No deadline when omitted.'
            ),
        ]
        | UnsetType
    ) = field(name='timeoutS', default=UNSET)
    metadata: (
        Annotated[
            dict[str, str],
            Meta(
                description='Up to 16 pairs of texts of your own, for example a project or a ticket. Keys have up to 64 letters, digits, dots, underscores and hyphens, and values up to 500 characters. Everybody who can read the resource can read the pairs.',
                max_length=16,
            ),
        ]
        | UnsetType
    ) = UNSET


class ExecuteAllOutput(Struct, tag_field='type', tag='all'):
    type: ClassVar[Literal['all']] = 'all'
    cache_mode: (
        Annotated[
            Literal['default', 'no-cache', 'no-store'],
            Meta(
                description='The requested cells always run. `default`: only dependencies that are stale run again. `no-cache`: dependencies run again. `no-store`: as `no-cache`, and the output is streamed but not saved with the run.'
            ),
        ]
        | UnsetType
    ) = field(name='cacheMode', default=UNSET)
    structural_errors: (
        Annotated[
            Literal['refuse', 'skip'],
            Meta(
                description='Treatment of structural errors in the requested cells or the cells that they depend on: names that several cells define, and cycles. `refuse`, the default: 409, and nothing runs. `skip`: the other cells run; cells with an error, and cells that need them, end as `error`, with the reason as their output.'
            ),
        ]
        | UnsetType
    ) = field(name='structuralErrors', default=UNSET)
    expected_updated_at: str | None | UnsetType = field(
        name='expectedUpdatedAt', default=UNSET
    )
    timeout_s: (
        Annotated[
            int,
            Meta(
                description='How many seconds the work may take after it begins. Waiting for the kernel of a sleeping session and checking new code do not count. At the deadline the work is interrupted as by a cancellation, and fails with the code `timed_out`. No deadline when omitted.'
            ),
        ]
        | UnsetType
    ) = field(name='timeoutS', default=UNSET)
    metadata: (
        Annotated[
            dict[str, str],
            Meta(
                description='Up to 16 pairs of texts of your own, for example a project or a ticket. Keys have up to 64 letters, digits, dots, underscores and hyphens, and values up to 500 characters. Everybody who can read the resource can read the pairs.',
                max_length=16,
            ),
        ]
        | UnsetType
    ) = UNSET


class ExecuteCells(Struct, tag_field='type', tag='cells'):
    type: ClassVar[Literal['cells']] = 'cells'
    cells: list[CellExecution]
    cache_mode: (
        Annotated[
            Literal['default', 'no-cache', 'no-store'],
            Meta(
                description='The requested cells always run. `default`: only dependencies that are stale run again. `no-cache`: dependencies run again. `no-store`: as `no-cache`, and the output is streamed but not saved with the run.'
            ),
        ]
        | UnsetType
    ) = field(name='cacheMode', default=UNSET)
    structural_errors: (
        Annotated[
            Literal['refuse', 'skip'],
            Meta(
                description='Treatment of structural errors in the requested cells or the cells that they depend on: names that several cells define, and cycles. `refuse`, the default: 409, and nothing runs. `skip`: the other cells run; cells with an error, and cells that need them, end as `error`, with the reason as their output.'
            ),
        ]
        | UnsetType
    ) = field(name='structuralErrors', default=UNSET)
    expected_updated_at: str | None | UnsetType = field(
        name='expectedUpdatedAt', default=UNSET
    )
    timeout_s: (
        Annotated[
            int,
            Meta(
                description='How many seconds the work may take after it begins. Waiting for the kernel of a sleeping session and checking new code do not count. At the deadline the work is interrupted as by a cancellation, and fails with the code `timed_out`. No deadline when omitted.'
            ),
        ]
        | UnsetType
    ) = field(name='timeoutS', default=UNSET)
    metadata: (
        Annotated[
            dict[str, str],
            Meta(
                description='Up to 16 pairs of texts of your own, for example a project or a ticket. Keys have up to 64 letters, digits, dots, underscores and hyphens, and values up to 500 characters. Everybody who can read the resource can read the pairs.',
                max_length=16,
            ),
        ]
        | UnsetType
    ) = UNSET


class ExecuteCellsOutput(Struct, tag_field='type', tag='cells'):
    type: ClassVar[Literal['cells']] = 'cells'
    cells: list[CellExecutionOutput]
    cache_mode: (
        Annotated[
            Literal['default', 'no-cache', 'no-store'],
            Meta(
                description='The requested cells always run. `default`: only dependencies that are stale run again. `no-cache`: dependencies run again. `no-store`: as `no-cache`, and the output is streamed but not saved with the run.'
            ),
        ]
        | UnsetType
    ) = field(name='cacheMode', default=UNSET)
    structural_errors: (
        Annotated[
            Literal['refuse', 'skip'],
            Meta(
                description='Treatment of structural errors in the requested cells or the cells that they depend on: names that several cells define, and cycles. `refuse`, the default: 409, and nothing runs. `skip`: the other cells run; cells with an error, and cells that need them, end as `error`, with the reason as their output.'
            ),
        ]
        | UnsetType
    ) = field(name='structuralErrors', default=UNSET)
    expected_updated_at: str | None | UnsetType = field(
        name='expectedUpdatedAt', default=UNSET
    )
    timeout_s: (
        Annotated[
            int,
            Meta(
                description='How many seconds the work may take after it begins. Waiting for the kernel of a sleeping session and checking new code do not count. At the deadline the work is interrupted as by a cancellation, and fails with the code `timed_out`. No deadline when omitted.'
            ),
        ]
        | UnsetType
    ) = field(name='timeoutS', default=UNSET)
    metadata: (
        Annotated[
            dict[str, str],
            Meta(
                description='Up to 16 pairs of texts of your own, for example a project or a ticket. Keys have up to 64 letters, digits, dots, underscores and hyphens, and values up to 500 characters. Everybody who can read the resource can read the pairs.',
                max_length=16,
            ),
        ]
        | UnsetType
    ) = UNSET


ExecutionRequest: TypeAlias = ExecuteAll | ExecuteCells


ExecutionRequestOutput: TypeAlias = ExecuteAllOutput | ExecuteCellsOutput


FailureCode: TypeAlias = Annotated[
    str,
    Meta(
        description="Why a run or a session failed. A published code never changes; later versions may add codes.\n\n- `cell_failed`: A cell failed. `cells` names all failed cells, and `message` is about the first one.\n- `kernel_command_failed`: The kernel could not carry out the request.\n- `kernel_start_failed`: The kernel did not start.\n- `kernel_start_timeout`: The kernel did not become ready in time.\n- `kernel_exited`: The kernel ended by itself.\n- `kernel_killed`: The kernel was killed: by a signal, or because an interrupt did not stop it.\n- `kernel_out_of_memory`: The kernel used more memory than it may.\n- `kernel_stuck`: The kernel did not end when it was killed.\n- `kernel_protocol_error`: The server ended the kernel, because it sent a message that the server could not read.\n- `kernel_host_lost`: The process that runs all kernels ended.\n- `timed_out`: The work took longer than the `timeoutS` of its request.\n- `stopped`: The kernel was stopped by the server.\n- `session_closed`: The session was closed.\n- `server_stopped`: The server was stopped.\n- `agent_failed`: The agent could not continue because of a fault of the server.\n- `agent_time_limit`: The prompt ran longer than the time limit of prompts.\n- `agent_step_limit`: The prompt took more steps than the limit of prompts allows.\n- `agent_token_limit`: The prompt used more tokens than the limit of prompts allows.\n- `model_answer_invalid`: The model's server sent a response that is not an answer.\n- `model_answer_too_long`: The model's answer did not come to an end.\n- `model_auth`: The provider does not accept the key.\n- `model_context_exceeded`: The conversation is too long for the model.\n- `model_failed`: The model's server reported a failure.\n- `model_overloaded`: The model's server is overloaded.\n- `model_rate_limited`: The provider limits how often the model may be asked.\n- `model_refused`: The model refused to answer.\n- `model_request_refused`: The provider refused the request.\n- `model_silent`: The model sent nothing for too long.\n- `model_unknown`: The provider has no such model.\n- `model_unreachable`: The model's server cannot be reached."
    ),
]


class FileEntry(Struct):
    path: Annotated[
        str,
        Meta(
            description='The path, relative to the folder of the workspace. The path of a folder ends in a slash.'
        ),
    ]
    type: Literal['file', 'folder']
    bytes: int | None
    updated_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='updatedAt'
    )
    etag: str | None


class FilePage(Struct):
    items: list[FileEntry]
    next_cursor: (
        Annotated[
            str,
            Meta(
                description='The `after` of the next page; null when there are no more items.'
            ),
        ]
        | None
    ) = field(name='nextCursor')


class FileUsage(Struct):
    bytes: Annotated[
        int,
        Meta(
            description='The space that the file system has allocated for the files, as `du` counts it.'
        ),
    ]
    entries: Annotated[int, Meta(description='Files, folders, links.')]
    complete: Annotated[
        bool,
        Meta(
            description='False when something was not counted: folders that are more than 64 deep or cannot be read, or entries beyond the first million. With a quota, a workspace that was not counted completely is full.'
        ),
    ]
    counted_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='countedAt'
    )
    max_bytes: int | None = field(name='maxBytes')
    max_entries: int | None = field(name='maxEntries')


class FilesConnection(Struct, tag_field='kind', tag='files'):
    """
    Data files of the workspace (CSV, TSV, JSON, JSON lines, Parquet; the text formats also with .gz). Each is a table that is named for its file: without folders and ending where that name is free.
    """

    kind: ClassVar[Literal['files']] = 'files'
    path: Annotated[
        str,
        Meta(
            description='A folder or one file, from the folder of the workspace’s files; `.` is all of them. It must exist.'
        ),
    ]


class FinalAnswer(Struct, tag_field='type', tag='final-answer'):
    type: ClassVar[Literal['final-answer']] = 'final-answer'
    markdown: str


class FunctionError(Struct):
    type: Annotated[
        str,
        Meta(
            description='`function_not_found`, `function_failed`, `result_too_large`, or the code of a failure of the kernel, such as `timed_out`. Later versions may add types.'
        ),
    ]
    message: str


class FunctionResult(Struct):
    success: Annotated[
        bool, Meta(description='False when the function, or the kernel, failed.')
    ]
    value: Annotated[
        Any,
        Meta(
            description='The return value of the function, as JSON. Null when it failed.'
        ),
    ]
    error: FunctionError | None


class Health(Struct):
    status: Annotated[
        Literal['ok', 'draining'],
        Meta(
            description='`draining`: the server is stopping, and new requests should go to another server.'
        ),
    ]


class HookFilter(Struct):
    """
    Which events are sent. An event must match every member; `metadata` are pairs that a run must have.
    """

    notebook_id: (
        Annotated[
            str,
            Meta(
                description='Only events of this notebook, also of the jobs that run it.'
            ),
        ]
        | UnsetType
    ) = field(name='notebookId', default=UNSET)
    job_id: (
        Annotated[str, Meta(description='Only events of this job and of its runs.')]
        | UnsetType
    ) = field(name='jobId', default=UNSET)
    metadata: (
        Annotated[
            dict[str, str],
            Meta(
                description='Up to 16 pairs of texts of your own, for example a project or a ticket. Keys have up to 64 letters, digits, dots, underscores and hyphens, and values up to 500 characters. Everybody who can read the resource can read the pairs.',
                max_length=16,
            ),
        ]
        | UnsetType
    ) = UNSET


class HookFilterOutput(Struct):
    """
    Which events are sent. An event must match every member; `metadata` are pairs that a run must have.
    """

    notebook_id: (
        Annotated[
            str,
            Meta(
                description='Only events of this notebook, also of the jobs that run it.'
            ),
        ]
        | UnsetType
    ) = field(name='notebookId', default=UNSET)
    job_id: (
        Annotated[str, Meta(description='Only events of this job and of its runs.')]
        | UnsetType
    ) = field(name='jobId', default=UNSET)
    metadata: (
        Annotated[
            dict[str, str],
            Meta(
                description='Up to 16 pairs of texts of your own, for example a project or a ticket. Keys have up to 64 letters, digits, dots, underscores and hyphens, and values up to 500 characters. Everybody who can read the resource can read the pairs.',
                max_length=16,
            ),
        ]
        | UnsetType
    ) = UNSET


class HookIn(Struct):
    id: str
    job_id: str = field(name='jobId')
    name: str | None
    url: Annotated[
        str,
        Meta(
            description='Where other programs post to fire the job. A path below the address of the server, or a whole URL if the setting `TROUPE_PUBLIC_URL` is set.'
        ),
    ]
    created_by: Annotated[str, Meta(description='The id of the user who made this resource.')] = field(
        name='createdBy'
    )
    created_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='createdAt'
    )


class HookInList(Struct):
    items: list[HookIn]


class HookReason(Struct):
    code: str
    message: str


class ImportWarning(Struct):
    code: Literal['packages_not_installed', 'pip_not_understood']
    message: str


class InstalledPackage(Struct):
    name: str
    version: str


class IntervalSchedule(Struct):
    every_s: Annotated[int, Meta(description='An interval in seconds. The instants are counted from the creation of the job.')] = field(
        name='everyS'
    )


class IntervalScheduleOutput(Struct):
    every_s: Annotated[int, Meta(description='An interval in seconds. The instants are counted from the creation of the job.')] = field(
        name='everyS'
    )


class JobReason(Struct):
    code: str
    message: str


class JobReport(Struct):
    """
    Present once the report of a job with `outputs` was made, soon after the end of the run.
    """

    url: str | None
    reason: JobReason | None


class JobTarget(Struct):
    notebook_id: str | UnsetType = field(name='notebookId', default=UNSET)
    cells: (
        Annotated[
            list[str],
            Meta(
                description='The cells that run, after the cells that they depend on. Omitted: all cells.'
            ),
        ]
        | UnsetType
    ) = UNSET
    datasource_slugs: (
        Annotated[
            list[str],
            Meta(
                description='The datasources that the notebook may use. Omitted: those of the notebook.'
            ),
        ]
        | UnsetType
    ) = field(name='datasourceSlugs', default=UNSET)
    session: Literal['open'] | UnsetType = UNSET
    agent_session_id: str | UnsetType = field(name='agentSessionId', default=UNSET)
    prompt: str | UnsetType = UNSET


class JobTargetOutput(Struct):
    notebook_id: str | UnsetType = field(name='notebookId', default=UNSET)
    cells: (
        Annotated[
            list[str],
            Meta(
                description='The cells that run, after the cells that they depend on. Omitted: all cells.'
            ),
        ]
        | UnsetType
    ) = UNSET
    datasource_slugs: (
        Annotated[
            list[str],
            Meta(
                description='The datasources that the notebook may use. Omitted: those of the notebook.'
            ),
        ]
        | UnsetType
    ) = field(name='datasourceSlugs', default=UNSET)
    session: Literal['open'] | UnsetType = UNSET
    agent_session_id: str | UnsetType = field(name='agentSessionId', default=UNSET)
    prompt: str | UnsetType = UNSET


class KernelHostState(Struct):
    state: Annotated[
        str, Meta(description='`starting`, `up`, `silent`, `restarting` or `down`.')
    ]
    confinement: str | None


class KernelTotals(Struct):
    """
    The sum over all kernels.
    """

    count: int
    cpu_seconds: Annotated[float, Meta(description='Processor time since the process began. Divide the difference between two responses by the time between them to get the use.')] = field(
        name='cpuSeconds'
    )
    memory_bytes: Annotated[int, Meta(description='Resident memory. A memory page that several processes share counts in each of them. The figure of the server does not include the mapped pages of the store.')] = field(
        name='memoryBytes'
    )


class KernelUsage(Struct):
    workspace_id: str = field(name='workspaceId')
    session_id: Annotated[str, Meta(description='The notebook session that the kernel works for.')] = field(
        name='sessionId'
    )
    node: str | None
    pid: int
    cpu_seconds: Annotated[float, Meta(description='Processor time since the process began. Divide the difference between two responses by the time between them to get the use.')] = field(
        name='cpuSeconds'
    )
    memory_bytes: Annotated[int, Meta(description='Resident memory. A memory page that several processes share counts in each of them. The figure of the server does not include the mapped pages of the store.')] = field(
        name='memoryBytes'
    )


class Key(Struct):
    id: str
    active: Annotated[
        bool, Meta(description='Whether the key encrypts new connections.')
    ]
    sealed: Annotated[int, Meta(description='How many connections the key encrypts.')]


class KeyList(Struct):
    items: list[Key]


class MariadbConnection(Struct, tag_field='kind', tag='mariadb'):
    """
    A MariaDB server.
    """

    kind: ClassVar[Literal['mariadb']] = 'mariadb'
    host: Annotated[str, Meta(description='Name or IP address of the server.')]
    port: Annotated[int, Meta(description='TCP port of the server, usually 3306.')]
    database: Annotated[
        str, Meta(description='Database that is used where a statement names none.')
    ]
    user: Annotated[str, Meta(description='Name of the account in the database.')]
    password: Annotated[
        str, Meta(description='Password of the account; empty when it has none.')
    ]
    tls: (
        Annotated[
            Literal['disable', 'prefer', 'require', 'verify-ca', 'verify-full'],
            Meta(
                description='`verify-full` checks certificate and host name, `verify-ca` the certificate only; `require` encrypts without checking, `prefer` encrypts if the server can, `disable` never does. Unset: `verify-full` for public addresses, `prefer` for loopback and private ones.'
            ),
        ]
        | UnsetType
    ) = UNSET
    ca_certificate: (
        Annotated[
            str,
            Meta(
                description='Certificates in PEM. They replace the certificates of the system when the certificate of the database server is checked.'
            ),
        ]
        | UnsetType
    ) = UNSET


class ModelKey(Struct):
    provider: str
    updated_by: str = field(name='updatedBy')
    updated_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='updatedAt'
    )


class ModelProvider(Struct):
    provider: Annotated[
        str, Meta(description='Model ids have the form `provider/model`.')
    ]
    usable: bool
    source: Literal['workspace', 'settings'] | None
    models: Annotated[
        list[str],
        Meta(description='The models that are known without asking the provider.'),
    ]


class ModelTest(Struct):
    ok: bool
    model: str
    message: str
    elapsed_ms: int = field(name='elapsedMs')


class ModelTestRequest(Struct):
    """
    The model to test. Omitted: the default model.
    """

    model: str | None | UnsetType = UNSET


class ModelUsage(Struct):
    day: Annotated[str, Meta(description='The UTC day on which the calls ended.')]
    user_id: Annotated[str, Meta(description='The user who sent the prompts. The user may have left the workspace.')] = field(
        name='userId'
    )
    model: Annotated[str, Meta(description='The model, with its provider.')]
    input_tokens: Annotated[int, Meta(description='All input tokens, including `cacheReadTokens` and `cacheWriteTokens`.')] = field(
        name='inputTokens'
    )
    output_tokens: int = field(name='outputTokens')
    cache_read_tokens: Annotated[int, Meta(description="Input tokens that were read from the provider's cache.")] = field(
        name='cacheReadTokens'
    )
    cache_write_tokens: Annotated[int, Meta(description="Input tokens that were written to the provider's cache.")] = field(
        name='cacheWriteTokens'
    )
    calls: Annotated[
        int,
        Meta(
            description='Answers of the model, including answers that broke off after their beginning.'
        ),
    ]
    estimated_calls: Annotated[int, Meta(description='How many of the calls have estimated figures: one token for every four bytes. The provider reported none, or the answer broke off first.')] = field(
        name='estimatedCalls'
    )


class ModelUsagePage(Struct):
    from_: Annotated[str, Meta(description='The first day.')] = field(name='from')
    to: Annotated[str, Meta(description='The last day.')]
    items: Annotated[
        list[ModelUsage],
        Meta(
            description='One sum for each day, user and model, the oldest day first. Callers who do not own the workspace see only their own tokens.'
        ),
    ]
    next_cursor: str | None = field(name='nextCursor')


class MoveCell(Struct, tag_field='type', tag='move-cell'):
    """
    Puts a cell before or after another one.
    """

    type: ClassVar[Literal['move-cell']] = 'move-cell'
    cell_id: Annotated[str, Meta(description='Unique within the notebook; without control characters, and not `__scratch__`.')] = field(
        name='cellId'
    )
    version: int | None | UnsetType = UNSET
    before: str | None | UnsetType = UNSET
    after: str | None | UnsetType = UNSET


class MssqlConnection(Struct, tag_field='kind', tag='mssql'):
    """
    SQL Server or Azure SQL, with a SQL login.
    """

    kind: ClassVar[Literal['mssql']] = 'mssql'
    host: Annotated[str, Meta(description='Name or IP address of the server.')]
    port: Annotated[int, Meta(description='TCP port of the server, usually 1433.')]
    database: Annotated[
        str, Meta(description='Database that is used where a statement names none.')
    ]
    user: Annotated[str, Meta(description='Name of the account in the database.')]
    password: Annotated[
        str, Meta(description='Password of the account; empty when it has none.')
    ]
    tls: (
        Annotated[
            Literal['disable', 'prefer', 'require', 'verify-ca', 'verify-full'],
            Meta(
                description='`verify-full` checks certificate and host name, `verify-ca` the certificate only; `require` encrypts without checking, `prefer` encrypts if the server can, `disable` never does. Unset: `verify-full` for public addresses, `prefer` for loopback and private ones.'
            ),
        ]
        | UnsetType
    ) = UNSET
    ca_certificate: (
        Annotated[
            str,
            Meta(
                description='Certificates in PEM. They replace the certificates of the system when the certificate of the database server is checked.'
            ),
        ]
        | UnsetType
    ) = UNSET


class MysqlConnection(Struct, tag_field='kind', tag='mysql'):
    """
    A MySQL server, or one that speaks its protocol.
    """

    kind: ClassVar[Literal['mysql']] = 'mysql'
    host: Annotated[str, Meta(description='Name or IP address of the server.')]
    port: Annotated[int, Meta(description='TCP port of the server, usually 3306.')]
    database: Annotated[
        str, Meta(description='Database that is used where a statement names none.')
    ]
    user: Annotated[str, Meta(description='Name of the account in the database.')]
    password: Annotated[
        str, Meta(description='Password of the account; empty when it has none.')
    ]
    tls: (
        Annotated[
            Literal['disable', 'prefer', 'require', 'verify-ca', 'verify-full'],
            Meta(
                description='`verify-full` checks certificate and host name, `verify-ca` the certificate only; `require` encrypts without checking, `prefer` encrypts if the server can, `disable` never does. Unset: `verify-full` for public addresses, `prefer` for loopback and private ones.'
            ),
        ]
        | UnsetType
    ) = UNSET
    ca_certificate: (
        Annotated[
            str,
            Meta(
                description='Certificates in PEM. They replace the certificates of the system when the certificate of the database server is checked.'
            ),
        ]
        | UnsetType
    ) = UNSET


class NewAgentConfig(Struct):
    """
    Members that are omitted keep their saved values.
    """

    model: str | None | UnsetType = UNSET
    instructions: str | None | UnsetType = UNSET


class NewAgentContext(Struct):
    datasource_slugs: (
        Annotated[
            list[str],
            Meta(
                description='Slugs of datasources. The server checks at their use whether they exist.'
            ),
        ]
        | UnsetType
    ) = field(name='datasourceSlugs', default=UNSET)


class NewAgentSessionGrant(Struct):
    user_id: Annotated[str, Meta(description='Chosen when the user is first added, for example a mail address. `.` and `..` are not allowed, because clients could not request their paths.')] = field(
        name='userId'
    )


class NewCell(Struct):
    cell_id: Annotated[
        str,
        Meta(
            description='Unique within the notebook; without control characters, and not `__scratch__`.'
        ),
    ]
    code: Annotated[str, Meta(description='Python.')]
    options: dict[str, Any] | UnsetType = UNSET


class NewDatasourceGrant(Struct):
    subject: Annotated[
        str,
        Meta(
            description='`user:<id>`, `role:editor`, or `role:viewer`, which includes editors.'
        ),
    ]


class NewHook(Struct):
    url: Annotated[
        str,
        Meta(
            description='The URL to which the events are posted. Everybody who may read the hook sees it, so it should contain no secret.'
        ),
    ]
    events: list[Literal['run.completed', 'run.failed', 'run.cancelled', 'job.failed', 'job.skipped', 'job.paused', 'session.failed']]
    filter: HookFilter | UnsetType = UNSET
    name: str | None | UnsetType = UNSET
    paused: (
        Annotated[
            bool,
            Meta(
                description='Whether the hook sends nothing. Events during a pause are not sent later.'
            ),
        ]
        | UnsetType
    ) = UNSET


class NewHookIn(Struct):
    name: str | None | UnsetType = UNSET


class NewModelKey(Struct):
    key: str


class NewNotebookApp(Struct):
    options: dict[str, Any] | UnsetType = UNSET


class NewNotebookSecret(Struct):
    value: str


class NewSerialization(Struct):
    version: Annotated[str, Meta(description='Default: `1`.')] | UnsetType = UNSET
    app: NewNotebookApp | UnsetType = UNSET
    cells: list[NewCell] | UnsetType = UNSET
    valid: (
        Annotated[bool, Meta(description='Ignored: the server computes this member.')]
        | UnsetType
    ) = UNSET
    ui_values: dict[str, Any] | UnsetType = UNSET


class NewWorkspace(Struct):
    name: str


class NewWorkspaceLimits(Struct):
    sessions: int | None | UnsetType = UNSET
    runs: int | None | UnsetType = UNSET
    streams: int | None | UnsetType = UNSET
    files_mb: int | None | UnsetType = field(name='filesMb', default=UNSET)
    files: int | None | UnsetType = UNSET
    jobs: int | None | UnsetType = UNSET
    sessions_per_user: int | None | UnsetType = field(
        name='sessionsPerUser', default=UNSET
    )
    runs_per_user: int | None | UnsetType = field(name='runsPerUser', default=UNSET)


class NodeChange(Struct):
    draining: Annotated[
        bool,
        Meta(
            description='With true, no new kernels start on the node; its present kernels stay.'
        ),
    ]


class NodeEngine(Struct):
    """
    The cluster that runs nodes for the server. Null when nodes join by themselves.
    """

    kind: Literal['ray']
    problem: str | None


class NodeInvitation(Struct):
    code: Annotated[
        str,
        Meta(
            description='Works once, in `troupe node join HOST:PORT#CODE` on the new node. HOST is an address of this server.'
        ),
    ]
    port: Annotated[int, Meta(description='The port at which nodes connect.')]
    expires_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='expiresAt'
    )


class NodeRelease(Struct):
    version: Annotated[str, Meta(description='The version of Troupe.')]
    build: Annotated[str, Meta(description='A digest of the programs of Troupe.')]
    scripts: Annotated[
        str, Meta(description='A digest of the programs that kernels run.')
    ]
    marimo: str
    python: str


class NotebookApp(Struct):
    options: dict[str, Any]


class NotebookChange(Struct):
    expected_updated_at: Annotated[str, Meta(description='The `updatedAt` of your last read. Any RFC 3339 form of that time is accepted: another offset, or more or fewer zeros after the milliseconds.')] = field(
        name='expectedUpdatedAt'
    )
    title: str | None | UnsetType = UNSET
    serialization: NewSerialization | UnsetType = UNSET
    datasource_slugs: (
        Annotated[
            list[str],
            Meta(
                description='Slugs of datasources. The server checks at their use whether they exist.'
            ),
        ]
        | UnsetType
    ) = field(name='datasourceSlugs', default=UNSET)
    variables: (
        Annotated[
            dict[str, str],
            Meta(
                description="Environment variables of the notebook's kernel, readable for everybody who can read the notebook. Secrets have an operation of their own."
            ),
        ]
        | UnsetType
    ) = UNSET
    metadata: (
        Annotated[
            dict[str, str],
            Meta(
                description='Up to 16 pairs of texts of your own, for example a project or a ticket. Keys have up to 64 letters, digits, dots, underscores and hyphens, and values up to 500 characters. Everybody who can read the resource can read the pairs.',
                max_length=16,
            ),
        ]
        | UnsetType
    ) = UNSET


class Replaces(Struct):
    """
    The notebook whose cells the file replaces. Its datasources and variables are kept. Omitted: a new notebook.
    """

    notebook_id: str = field(name='notebookId')
    expected_updated_at: Annotated[str, Meta(description='The `updatedAt` of your last read.')] = field(
        name='expectedUpdatedAt'
    )


class NotebookImport(Struct):
    format: Literal['py', 'ipynb', 'md']
    content: Annotated[str, Meta(description='The whole file.')]
    title: (
        Annotated[
            str,
            Meta(
                description='The title of the notebook, in place of the title in the file.'
            ),
        ]
        | UnsetType
    ) = UNSET
    metadata: (
        Annotated[
            dict[str, str],
            Meta(
                description='Up to 16 pairs of texts of your own, for example a project or a ticket. Keys have up to 64 letters, digits, dots, underscores and hyphens, and values up to 500 characters. Everybody who can read the resource can read the pairs.',
                max_length=16,
            ),
        ]
        | UnsetType
    ) = UNSET
    install: (
        Annotated[
            bool,
            Meta(
                description='Whether packages that cells of a Jupyter notebook install with pip become dependencies, to be installed when the notebook is opened. Otherwise `warnings` name them. Only whole requirements count: no files, addresses or other indexes. Default: `false`.'
            ),
        ]
        | UnsetType
    ) = UNSET
    settings_from: (
        Annotated[
            str,
            Meta(
                description='The id of a notebook whose datasources, variables, metadata and secrets the new one gets. `metadata` overrides the metadata of that notebook. Cannot be combined with `replaces`.'
            ),
        ]
        | UnsetType
    ) = field(name='settingsFrom', default=UNSET)
    replaces: (
        Annotated[
            Replaces,
            Meta(
                description='The notebook whose cells the file replaces. Its datasources and variables are kept. Omitted: a new notebook.'
            ),
        ]
        | UnsetType
    ) = UNSET


class NotebookRestoration(Struct):
    expected_updated_at: Annotated[str, Meta(description='The `updatedAt` of your last read of the notebook.')] = field(
        name='expectedUpdatedAt'
    )


class NotebookSavedData(Struct):
    updated_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='updatedAt'
    )


class NotebookSavedEvent(Struct, tag_field='type', tag='notebook.saved'):
    type: ClassVar[Literal['notebook.saved']] = 'notebook.saved'
    session_id: str = field(name='sessionId')
    time: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
    data: NotebookSavedData
    run_id: str | UnsetType = field(name='runId', default=UNSET)
    missed: (
        Annotated[
            bool,
            Meta(
                description='The event happened while you were disconnected, after the event that you named.'
            ),
        ]
        | UnsetType
    ) = UNSET
    id: str = ''


class NotebookSecret(Struct):
    name: str
    updated_by: str = field(name='updatedBy')
    updated_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='updatedAt'
    )


class NotebookSecretList(Struct):
    items: list[NotebookSecret]


class NotebookSessionStatusData(Struct):
    status: Literal['starting', 'ready', 'busy', 'restoring', 'failed', 'closing', 'closed']
    reason: (
        Annotated[str, Meta(description='A code in snake_case that gives more detail.')]
        | UnsetType
    ) = UNSET


class NotebookSessionStatusEvent(Struct, tag_field='type', tag='session.status'):
    type: ClassVar[Literal['session.status']] = 'session.status'
    session_id: str = field(name='sessionId')
    time: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
    data: NotebookSessionStatusData
    run_id: str | UnsetType = field(name='runId', default=UNSET)
    missed: (
        Annotated[
            bool,
            Meta(
                description='The event happened while you were disconnected, after the event that you named.'
            ),
        ]
        | UnsetType
    ) = UNSET
    id: str = ''


class NotebookSessionSummary(Struct):
    session_id: Annotated[str, Meta(description="The notebook's id.")] = field(
        name='sessionId'
    )
    notebook_id: str = field(name='notebookId')
    title: str | None
    environment_id: str | None = field(name='environmentId')
    mode: Literal['edit', 'run']
    status: Literal['starting', 'ready', 'busy', 'restoring', 'failed', 'closing', 'closed']
    current_run_id: str | None = field(name='currentRunId')
    created_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='createdAt'
    )
    updated_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='updatedAt'
    )
    url: Annotated[
        str,
        Meta(
            description='The address of the notebook in a browser, for people who have signed in there; others sign in first. A path below the address of the server, or a whole URL if the setting `TROUPE_PUBLIC_URL` is set.'
        ),
    ]
    metadata: (
        Annotated[
            dict[str, str],
            Meta(
                description='The pairs of texts that were attached to the resource. Absent when there are none.'
            ),
        ]
        | UnsetType
    ) = UNSET


class NotebookSummary(Struct):
    id: str
    title: str | None
    cell_count: int = field(name='cellCount')
    datasource_slugs: list[str] = field(name='datasourceSlugs')
    created_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='createdAt'
    )
    updated_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='updatedAt'
    )
    url: Annotated[
        str,
        Meta(
            description='The address of the notebook in a browser, for people who have signed in there; others sign in first. A path below the address of the server, or a whole URL if the setting `TROUPE_PUBLIC_URL` is set.'
        ),
    ]
    metadata: (
        Annotated[
            dict[str, str],
            Meta(
                description='The pairs of texts that were attached to the resource. Absent when there are none.'
            ),
        ]
        | UnsetType
    ) = UNSET
    created_by: (
        Annotated[
            str,
            Meta(
                description='The id of the user who made this resource. Absent when no user has made it.'
            ),
        ]
        | UnsetType
    ) = field(name='createdBy', default=UNSET)
    updated_by: (
        Annotated[
            str,
            Meta(
                description='The id of the user who made the last change. Absent when no user has made it.'
            ),
        ]
        | UnsetType
    ) = field(name='updatedBy', default=UNSET)


class NotebookTarget(Struct):
    """
    The notebook as it is when the job fires, on a session of its own. The session works on a copy, which is deleted afterwards; the runs are kept.
    """

    notebook_id: str = field(name='notebookId')
    cells: (
        Annotated[
            list[str],
            Meta(
                description='The cells that run, after the cells that they depend on. Omitted: all cells.'
            ),
        ]
        | UnsetType
    ) = UNSET
    datasource_slugs: (
        Annotated[
            list[str],
            Meta(
                description='The datasources that the notebook may use. Omitted: those of the notebook.'
            ),
        ]
        | UnsetType
    ) = field(name='datasourceSlugs', default=UNSET)


class NotebookTargetOutput(Struct):
    """
    The notebook as it is when the job fires, on a session of its own. The session works on a copy, which is deleted afterwards; the runs are kept.
    """

    notebook_id: str = field(name='notebookId')
    cells: (
        Annotated[
            list[str],
            Meta(
                description='The cells that run, after the cells that they depend on. Omitted: all cells.'
            ),
        ]
        | UnsetType
    ) = UNSET
    datasource_slugs: (
        Annotated[
            list[str],
            Meta(
                description='The datasources that the notebook may use. Omitted: those of the notebook.'
            ),
        ]
        | UnsetType
    ) = field(name='datasourceSlugs', default=UNSET)


class NotebookVersion(Struct):
    updated_at: Annotated[str, Meta(description='The time of the last change in this version. It names the version.')] = field(
        name='updatedAt'
    )
    title: str | None
    cell_count: int = field(name='cellCount')
    is_current: Annotated[bool, Meta(description='Whether this is the present state of the notebook.')] = field(
        name='isCurrent'
    )
    updated_by: (
        Annotated[
            str,
            Meta(
                description='The id of the user who made the last change. Absent when no user has made it.'
            ),
        ]
        | UnsetType
    ) = field(name='updatedBy', default=UNSET)


class NotebookVersionList(Struct):
    items: list[NotebookVersion]


class OneInstant(Struct):
    """
    Fires once.
    """

    at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]


class OneInstantOutput(Struct):
    """
    Fires once.
    """

    at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]


class OpenAgentSession(Struct):
    environment_id: Annotated[str, Meta(description='The execution environment in which to open the conversation.')] = field(
        name='environmentId'
    )
    notebook_session_id: str | None | UnsetType = field(
        name='notebookSessionId', default=UNSET
    )
    id: str | None | UnsetType = UNSET
    config: NewAgentConfig | UnsetType = UNSET
    context: NewAgentContext | UnsetType = UNSET


class OpenBrowserPage(Struct):
    access: Literal['edit', 'interact', 'view'] | None | UnsetType = UNSET


class OpenNotebookSession(Struct):
    notebook_id: str = field(name='notebookId')
    environment_id: str = field(name='environmentId')
    mode: Literal['edit', 'run'] | None | UnsetType = UNSET
    arguments: (
        Annotated[
            list[str],
            Meta(
                description='Command-line arguments, as after `--` in `marimo run notebook.py --`: `["--month=3"]` is `{"month": 3}` in `mo.cli_args()`. The list is also `sys.argv[1:]`.'
            ),
        ]
        | UnsetType
    ) = UNSET
    metadata: (
        Annotated[
            dict[str, str],
            Meta(
                description='Up to 16 pairs of texts of your own, for example a project or a ticket. Keys have up to 64 letters, digits, dots, underscores and hyphens, and values up to 500 characters. Everybody who can read the resource can read the pairs.',
                max_length=16,
            ),
        ]
        | UnsetType
    ) = UNSET
    ttl_s: int | None | UnsetType = field(name='ttlS', default=UNSET)
    idle_timeout_s: int | None | UnsetType = field(name='idleTimeoutS', default=UNSET)


class OpenSessionTarget(Struct):
    """
    The open session of the notebook. An instant at which there is none is skipped with the reason `no_session`, and one at which the session has other work with the reason `busy`. A session that sleeps is woken.
    """

    notebook_id: str = field(name='notebookId')
    session: Literal['open']
    cells: (
        Annotated[
            list[str],
            Meta(
                description='The cells that run, after the cells that they depend on. Omitted: all cells.'
            ),
        ]
        | UnsetType
    ) = UNSET


class OpenSessionTargetOutput(Struct):
    """
    The open session of the notebook. An instant at which there is none is skipped with the reason `no_session`, and one at which the session has other work with the reason `busy`. A session that sleeps is woken.
    """

    notebook_id: str = field(name='notebookId')
    session: Literal['open']
    cells: (
        Annotated[
            list[str],
            Meta(
                description='The cells that run, after the cells that they depend on. Omitted: all cells.'
            ),
        ]
        | UnsetType
    ) = UNSET


class OutputTableColumn(Struct):
    name: str
    type: Annotated[str, Meta(description="The library's own name, such as `int64`.")]


class OwnUser(Struct):
    id: Annotated[
        str,
        Meta(
            description='Chosen when the user is first added, for example a mail address. `.` and `..` are not allowed, because clients could not request their paths.'
        ),
    ]


class PackageInstallation(Struct):
    requirements: list[str]
    started_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='startedAt'
    )
    text: Annotated[str, Meta(description='The current step, for people.')]
    error: str | None


class PostgresConnection(Struct, tag_field='kind', tag='postgres'):
    """
    A PostgreSQL server, or one that speaks its protocol.
    """

    kind: ClassVar[Literal['postgres']] = 'postgres'
    connection_string: Annotated[
        str,
        Meta(
            description='A URL with user, password, one host and database. `sslmode` has its usual meaning: `verify-full` checks certificate and host name, `verify-ca` the certificate only, `require` encrypts without checking, `prefer` encrypts if the server can. Without `sslmode`, public addresses get `verify-full`, loopback and private ones `prefer`. Certificates are checked with the certificate authorities of this server’s system.'
        ),
    ]
    schema: Annotated[
        str,
        Meta(
            description='Schema in which tables are looked up when a statement names none. It must exist.'
        ),
    ]


class ProblemPlace(Struct):
    path: Annotated[
        str,
        Meta(
            description='JSON pointer into the body, or `query/<name>`, `header/<name>`.'
        ),
    ]
    message: str


class PromptRequest(Struct):
    prompt: str
    timeout_s: (
        Annotated[
            int,
            Meta(
                description='How many seconds the work may take after it begins. Waiting for the kernel of a sleeping session and checking new code do not count. At the deadline the work is interrupted as by a cancellation, and fails with the code `timed_out`. No deadline when omitted.'
            ),
        ]
        | UnsetType
    ) = field(name='timeoutS', default=UNSET)
    metadata: (
        Annotated[
            dict[str, str],
            Meta(
                description='Up to 16 pairs of texts of your own, for example a project or a ticket. Keys have up to 64 letters, digits, dots, underscores and hyphens, and values up to 500 characters. Everybody who can read the resource can read the pairs.',
                max_length=16,
            ),
        ]
        | UnsetType
    ) = UNSET


class PromptRequestOutput(Struct):
    prompt: str
    timeout_s: (
        Annotated[
            int,
            Meta(
                description='How many seconds the work may take after it begins. Waiting for the kernel of a sleeping session and checking new code do not count. At the deadline the work is interrupted as by a cancellation, and fails with the code `timed_out`. No deadline when omitted.'
            ),
        ]
        | UnsetType
    ) = field(name='timeoutS', default=UNSET)
    metadata: (
        Annotated[
            dict[str, str],
            Meta(
                description='Up to 16 pairs of texts of your own, for example a project or a ticket. Keys have up to 64 letters, digits, dots, underscores and hyphens, and values up to 500 characters. Everybody who can read the resource can read the pairs.',
                max_length=16,
            ),
        ]
        | UnsetType
    ) = UNSET


class Readiness(Struct):
    ready: bool
    reason: (
        Annotated[str, Meta(description='Why the server is not ready.')] | UnsetType
    ) = UNSET
    warnings: (
        Annotated[
            list[str],
            Meta(
                description='Problems of a server that is ready, which an operator should look at, such as a disk that is nearly full.'
            ),
        ]
        | UnsetType
    ) = UNSET


class ReasoningDeltaData(Struct):
    entry_id: str = field(name='entryId')
    text: str


class ReasoningDeltaEvent(Struct, tag_field='type', tag='reasoning-delta'):
    type: ClassVar[Literal['reasoning-delta']] = 'reasoning-delta'
    session_id: str = field(name='sessionId')
    time: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
    data: ReasoningDeltaData
    run_id: str | UnsetType = field(name='runId', default=UNSET)
    missed: (
        Annotated[
            bool,
            Meta(
                description='The event happened while you were disconnected, after the event that you named.'
            ),
        ]
        | UnsetType
    ) = UNSET
    id: str = ''


class ReasoningPart(Struct, tag_field='type', tag='reasoning'):
    type: ClassVar[Literal['reasoning']] = 'reasoning'
    text: str
    omitted_chars: (
        Annotated[
            int,
            Meta(
                description='Only in events, which have only the beginning of a long text: the number of characters that are left out. Of an `input`, the beginning of its JSON is sent. `GET …/entries` has the whole text.'
            ),
        ]
        | UnsetType
    ) = field(name='omittedChars', default=UNSET)


class RedshiftConnection(Struct, tag_field='kind', tag='redshift'):
    """
    A Redshift cluster or serverless workgroup, with a database user and its password.
    """

    kind: ClassVar[Literal['redshift']] = 'redshift'
    host: Annotated[str, Meta(description='Name or IP address of the server.')]
    port: Annotated[int, Meta(description='TCP port of the server, usually 5439.')]
    database: Annotated[str, Meta(description='Database of the cluster or workgroup.')]
    user: Annotated[str, Meta(description='Name of the account in the database.')]
    password: Annotated[
        str, Meta(description='Password of the account; empty when it has none.')
    ]
    schema: Annotated[
        str,
        Meta(
            description='Schema in which tables are looked up when a statement names none. It must exist.'
        ),
    ]
    tls: (
        Annotated[
            Literal['disable', 'prefer', 'require', 'verify-ca', 'verify-full'],
            Meta(
                description='`verify-full` checks certificate and host name, `verify-ca` the certificate only; `require` encrypts without checking, `prefer` encrypts if the server can, `disable` never does. Unset: `verify-full` for public addresses, `prefer` for loopback and private ones.'
            ),
        ]
        | UnsetType
    ) = UNSET
    ca_certificate: (
        Annotated[
            str,
            Meta(
                description='Certificates in PEM. They replace the certificates of the system when the certificate of the database server is checked.'
            ),
        ]
        | UnsetType
    ) = UNSET


class RegisteredCell(Struct):
    cell_id: str = field(name='cellId')
    name: str | None
    code: str
    config: CellSettings
    version: Annotated[
        int,
        Meta(
            description='Grows with every change of the code, the name or the settings of the cell. A change that names the version is refused if the cell has another version.'
        ),
    ]


Role: TypeAlias = Annotated[
    Literal['owner', 'editor', 'viewer'],
    Meta(
        description='A viewer reads, an editor also writes, an owner also administers.'
    ),
]


class RunAsset(Struct, tag_field='type', tag='asset'):
    type: ClassVar[Literal['asset']] = 'asset'
    asset_id: str = field(name='assetId')
    mimetype: str
    bytes: int
    sha256: str


class RunCancellationError(Struct):
    code: Annotated[
        str,
        Meta(
            description='The code of the error with which the cancellation was refused.'
        ),
    ]
    message: str


class RunCancellationResult(Struct):
    run_id: str = field(name='runId')
    status: Literal['cancelling'] | None
    error: RunCancellationError | None


class RunCancellationResults(Struct):
    items: list[RunCancellationResult]


class RunCancellations(Struct):
    run_ids: list[str] = field(name='runIds')


RunStatus: TypeAlias = Literal['running', 'completed', 'failed', 'cancelled']


class RunWarning(Struct, tag_field='type', tag='warning'):
    type: ClassVar[Literal['warning']] = 'warning'
    code: Annotated[
        str,
        Meta(
            description='A stable code: `console_truncated`, `figures_left_out`, `output_lost`, `missing_packages` or `history_compacted`. Later versions may add codes.'
        ),
    ]
    message: str
    cell_id: (
        Annotated[
            str,
            Meta(
                description='The cell that the warning is about. Absent for a warning about no cell.'
            ),
        ]
        | UnsetType
    ) = field(name='cellId', default=UNSET)


class Schedule(Struct):
    cron: (
        Annotated[
            str,
            Meta(
                description='Five fields (minute, hour, day of the month, month, day of the week), six with seconds in front, or one of `@hourly`, `@daily`, `@weekly`, `@monthly` and `@yearly`. Months and days of the week may have their English names. The times are those of `timeZone`.'
            ),
        ]
        | UnsetType
    ) = UNSET
    every_s: (
        Annotated[
            int,
            Meta(
                description='An interval in seconds. The instants are counted from the creation of the job.'
            ),
        ]
        | UnsetType
    ) = field(name='everyS', default=UNSET)
    at: (
        Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
        | UnsetType
    ) = UNSET


class ScheduleInstants(Struct):
    next: Annotated[list[str], Meta(description='The next five instants.')]


class ScheduleOutput(Struct):
    cron: (
        Annotated[
            str,
            Meta(
                description='Five fields (minute, hour, day of the month, month, day of the week), six with seconds in front, or one of `@hourly`, `@daily`, `@weekly`, `@monthly` and `@yearly`. Months and days of the week may have their English names. The times are those of `timeZone`.'
            ),
        ]
        | UnsetType
    ) = UNSET
    every_s: (
        Annotated[
            int,
            Meta(
                description='An interval in seconds. The instants are counted from the creation of the job.'
            ),
        ]
        | UnsetType
    ) = field(name='everyS', default=UNSET)
    at: (
        Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
        | UnsetType
    ) = UNSET


class SchedulePreview(Struct):
    schedule: Schedule
    time_zone: (
        Annotated[
            str,
            Meta(
                description='The name of a time zone, such as `Europe/Berlin`. It applies to `cron`.'
            ),
        ]
        | UnsetType
    ) = field(name='timeZone', default=UNSET)


Scope: TypeAlias = Annotated[
    Literal['workspaceRuntime:connect', 'datasource:read', 'workspace:manage', 'server:observe', 'server:manage'],
    Meta(
        description='The permitted use of a token. The role of its user limits it further.'
    ),
]


class Serialization(Struct):
    version: str
    app: NotebookApp
    cells: list[Cell]
    valid: Annotated[bool, Meta(description='False when a cell is not valid Python.')]
    ui_values: dict[str, Any]


class ServerLimits(Struct):
    sessions: int | None
    sessions_per_workspace: int | None = field(name='sessionsPerWorkspace')
    runs_per_workspace: int | None = field(name='runsPerWorkspace')
    streams_per_workspace: int | None = field(name='streamsPerWorkspace')
    connections: int | None
    kernel_memory_bytes: int | None = field(name='kernelMemoryBytes')
    idle_timeout_s: int | None = field(name='idleTimeoutS')


class ServerLog(Struct):
    items: Annotated[
        list[str],
        Meta(
            description='The last lines, oldest first: at most 500, and 256 Ki characters. Each is JSON.'
        ),
    ]
    silent_workers: (
        Annotated[
            int,
            Meta(
                description='In a server of several workers: how many workers did not answer within five seconds. Their data are missing here.'
            ),
        ]
        | UnsetType
    ) = field(name='silentWorkers', default=UNSET)


class ServerProcess(Struct):
    """
    The process of the server, without kernels. With several workers: the sum of their use, their longest delays, and the id of the primary process, which started them.
    """

    pid: int
    cpu_seconds: Annotated[float, Meta(description='Processor time since the process began. Divide the difference between two responses by the time between them to get the use.')] = field(
        name='cpuSeconds'
    )
    memory_bytes: Annotated[int, Meta(description='Resident memory. A memory page that several processes share counts in each of them. The figure of the server does not include the mapped pages of the store.')] = field(
        name='memoryBytes'
    )
    heap_bytes: Annotated[int, Meta(description='Bytes.')] = field(name='heapBytes')
    event_loop: EventLoopState = field(name='eventLoop')


class ServerReplayedData(Struct):
    pass


class ServerReplayedEvent(Struct, tag_field='type', tag='server.replayed'):
    type: ClassVar[Literal['server.replayed']] = 'server.replayed'
    time: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
    data: ServerReplayedData
    missed: (
        Annotated[
            bool,
            Meta(
                description='The event happened while you were disconnected, after the event that you named.'
            ),
        ]
        | UnsetType
    ) = UNSET
    id: str = ''


class ServerResyncRequiredData(Struct):
    reason: Literal['slow_subscriber', 'server_stopping']


class ServerResyncRequiredEvent(Struct, tag_field='type', tag='server.resync-required'):
    type: ClassVar[Literal['server.resync-required']] = 'server.resync-required'
    time: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
    data: ServerResyncRequiredData
    missed: (
        Annotated[
            bool,
            Meta(
                description='The event happened while you were disconnected, after the event that you named.'
            ),
        ]
        | UnsetType
    ) = UNSET
    id: str = ''


class ServerVersions(Struct):
    troupe: str
    node: str
    marimo: str | None


class SessionCell(Struct):
    cell_id: str = field(name='cellId')
    name: str
    status: Literal['idle', 'queued', 'running', 'stale', 'disabled', 'error']
    stale: bool
    version: Annotated[
        int,
        Meta(
            description='Grows with every change of the code, the name or the settings of the cell. A change that names the version is refused if the cell has another version.'
        ),
    ]


class SessionClosedData(Struct):
    reason: Literal['closed']
    closed_by: (
        Annotated[
            str,
            Meta(
                description='The id of the user who closed this resource. Absent when it has ended by itself, or when the user is not known.'
            ),
        ]
        | UnsetType
    ) = field(name='closedBy', default=UNSET)


class SessionClosedEvent(Struct, tag_field='type', tag='session.closed'):
    type: ClassVar[Literal['session.closed']] = 'session.closed'
    session_id: str = field(name='sessionId')
    time: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
    data: SessionClosedData
    run_id: str | UnsetType = field(name='runId', default=UNSET)
    missed: (
        Annotated[
            bool,
            Meta(
                description='The event happened while you were disconnected, after the event that you named.'
            ),
        ]
        | UnsetType
    ) = UNSET
    id: str = ''


class SessionInterruption(Struct):
    session_id: str = field(name='sessionId')
    status: Annotated[
        Literal['interrupting', 'idle'],
        Meta(
            description='The outcome, not a status of the session. `interrupting`: the interruption has begun. `idle`: nothing ran.'
        ),
    ]
    run_id: str | None = field(name='runId')


class SessionReplayedData(Struct):
    pass


class SessionReplayedEvent(Struct, tag_field='type', tag='session.replayed'):
    type: ClassVar[Literal['session.replayed']] = 'session.replayed'
    session_id: str = field(name='sessionId')
    time: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
    data: SessionReplayedData
    run_id: str | UnsetType = field(name='runId', default=UNSET)
    missed: (
        Annotated[
            bool,
            Meta(
                description='The event happened while you were disconnected, after the event that you named.'
            ),
        ]
        | UnsetType
    ) = UNSET
    id: str = ''


class SessionResyncRequiredData(Struct):
    reason: Literal['slow_subscriber', 'server_stopping']


class SessionResyncRequiredEvent(Struct, tag_field='type', tag='session.resync-required'):
    type: ClassVar[Literal['session.resync-required']] = 'session.resync-required'
    session_id: str = field(name='sessionId')
    time: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
    data: SessionResyncRequiredData
    run_id: str | UnsetType = field(name='runId', default=UNSET)
    missed: (
        Annotated[
            bool,
            Meta(
                description='The event happened while you were disconnected, after the event that you named.'
            ),
        ]
        | UnsetType
    ) = UNSET
    id: str = ''


class SessionStartupData(Struct):
    phase: Annotated[
        str,
        Meta(
            description='`packages`: the packages of the notebook and its workspace are installed.'
        ),
    ]
    text: Annotated[str, Meta(description='The current step, for people.')]


class SessionStartupEvent(Struct, tag_field='type', tag='session.startup'):
    type: ClassVar[Literal['session.startup']] = 'session.startup'
    session_id: str = field(name='sessionId')
    time: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
    data: SessionStartupData
    run_id: str | UnsetType = field(name='runId', default=UNSET)
    missed: (
        Annotated[
            bool,
            Meta(
                description='The event happened while you were disconnected, after the event that you named.'
            ),
        ]
        | UnsetType
    ) = UNSET
    id: str = ''


class SetCellCode(Struct, tag_field='type', tag='set-code'):
    """
    Replaces the code of a cell. Nothing runs.
    """

    type: ClassVar[Literal['set-code']] = 'set-code'
    cell_id: Annotated[str, Meta(description='Unique within the notebook; without control characters, and not `__scratch__`.')] = field(
        name='cellId'
    )
    code: Annotated[str, Meta(description='Python.')]
    version: int | None | UnsetType = UNSET


class SetCellConfig(Struct, tag_field='type', tag='set-config'):
    """
    Changes the settings of a cell.
    """

    type: ClassVar[Literal['set-config']] = 'set-config'
    cell_id: Annotated[str, Meta(description='Unique within the notebook; without control characters, and not `__scratch__`.')] = field(
        name='cellId'
    )
    config: CellSettingsChange
    version: int | None | UnsetType = UNSET


class SetCellName(Struct, tag_field='type', tag='set-name'):
    """
    Gives a cell another name.
    """

    type: ClassVar[Literal['set-name']] = 'set-name'
    cell_id: Annotated[str, Meta(description='Unique within the notebook; without control characters, and not `__scratch__`.')] = field(
        name='cellId'
    )
    name: Annotated[
        str,
        Meta(
            description='The name of the cell; empty for none. No other cell of the notebook may have the same name.'
        ),
    ]
    version: int | None | UnsetType = UNSET


class SetUiValues(Struct):
    values: Annotated[
        dict[str, Any],
        Meta(
            description="The new values by the ids of their elements: `object-id` in the HTML of an output, and `_id` of the element in Python. A value is what marimo's page would send, such as a number for a slider, or a list of the chosen keys for a dropdown.",
            max_length=1000,
        ),
    ]
    timeout_s: (
        Annotated[
            int,
            Meta(
                description='How many seconds the work may take after it begins. Waiting for the kernel of a sleeping session and checking new code do not count. At the deadline the work is interrupted as by a cancellation, and fails with the code `timed_out`. No deadline when omitted.'
            ),
        ]
        | UnsetType
    ) = field(name='timeoutS', default=UNSET)


class SnowflakeConnection(Struct, tag_field='kind', tag='snowflake'):
    """
    A Snowflake account, over its SQL API, with a `token` or the `private_key` of a key pair: Snowflake no longer accepts passwords from programs.
    """

    kind: ClassVar[Literal['snowflake']] = 'snowflake'
    account: Annotated[
        str,
        Meta(
            description='Account identifier: organization and account name, or the account locator with its region.'
        ),
    ]
    user: Annotated[str, Meta(description='Name of the account in the database.')]
    warehouse: Annotated[str, Meta(description='Warehouse that statements run in.')]
    database: Annotated[
        str, Meta(description='Database that is used where a statement names none.')
    ]
    schema: Annotated[
        str, Meta(description='Schema that is used where a statement names none.')
    ]
    private_key: (
        Annotated[str, Meta(description='Unencrypted RSA private key in PEM.')]
        | UnsetType
    ) = UNSET
    token: (
        Annotated[str, Meta(description='Programmatic access token of the user.')]
        | UnsetType
    ) = UNSET
    role: (
        Annotated[
            str, Meta(description='Role of the session; the user’s own when unset.')
        ]
        | UnsetType
    ) = UNSET
    url: (
        Annotated[
            str,
            Meta(
                description='Base URL of the service, if it is not the usual one. It has a scheme, a host and a port, and nothing else.'
            ),
        ]
        | UnsetType
    ) = UNSET
    ca_certificate: (
        Annotated[
            str,
            Meta(
                description='Certificates in PEM. They replace the certificates of the system when the certificate of the database server is checked.'
            ),
        ]
        | UnsetType
    ) = UNSET


class SqliteConnection(Struct, tag_field='kind', tag='sqlite'):
    """
    A SQLite database that is a file of the workspace.
    """

    kind: ClassVar[Literal['sqlite']] = 'sqlite'
    path: Annotated[
        str,
        Meta(
            description='The database file, from the folder of the workspace’s files. It must exist.'
        ),
    ]


class Startup(Struct):
    phase: Annotated[
        str,
        Meta(
            description='`packages`: the packages of the notebook and its workspace are installed.'
        ),
    ]
    text: Annotated[str, Meta(description='The current step, for people.')]


class StoreState(Struct):
    used_bytes: Annotated[int, Meta(description='The size of the store, up to its last page.')] = field(
        name='usedBytes'
    )
    reusable_bytes: Annotated[int, Meta(description='Free space within `usedBytes`.')] = field(
        name='reusableBytes'
    )
    is_full: Annotated[bool, Meta(description='Whether the disk is full: nothing new is stored.')] = field(
        name='isFull'
    )
    commit_ms: float | None = field(name='commitMs')


class StoredUsage(Struct):
    bytes: Annotated[
        int,
        Meta(
            description='Bytes of all records of the workspace, without their keys and the overhead of the store.'
        ),
    ]
    records: Annotated[int, Meta(description='The number of records.')]
    notebooks: Annotated[
        int, Meta(description='Bytes of notebooks and the last outputs of their cells.')
    ]
    runs: Annotated[
        int, Meta(description='Bytes of runs, with the outputs that are not assets.')
    ]
    assets: Annotated[
        int, Meta(description='Bytes of large outputs and figures of runs.')
    ]
    conversations: Annotated[
        int, Meta(description='Bytes of conversations with agents.')
    ]
    audit: Annotated[int, Meta(description='Bytes of the audit.')]
    other: Annotated[
        int,
        Meta(
            description='Bytes of everything else: sessions, recorded answers, datasources, members.'
        ),
    ]
    complete: Annotated[
        bool,
        Meta(
            description='False during the first count after the start of the server if it takes longer than a second; the figures then cover the records counted so far.'
        ),
    ]
    counted_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='countedAt'
    )


class StreamedVariable(Struct):
    name: str
    declared_by: list[str] = field(name='declaredBy')
    used_by: list[str] = field(name='usedBy')


class TextDeltaData(Struct):
    entry_id: str = field(name='entryId')
    text: str


class TextDeltaEvent(Struct, tag_field='type', tag='text-delta'):
    type: ClassVar[Literal['text-delta']] = 'text-delta'
    session_id: str = field(name='sessionId')
    time: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
    data: TextDeltaData
    run_id: str | UnsetType = field(name='runId', default=UNSET)
    missed: (
        Annotated[
            bool,
            Meta(
                description='The event happened while you were disconnected, after the event that you named.'
            ),
        ]
        | UnsetType
    ) = UNSET
    id: str = ''


class TextPart(Struct, tag_field='type', tag='text'):
    type: ClassVar[Literal['text']] = 'text'
    text: Annotated[str, Meta(description='Markdown.')]
    omitted_chars: (
        Annotated[
            int,
            Meta(
                description='Only in events, which have only the beginning of a long text: the number of characters that are left out. Of an `input`, the beginning of its JSON is sent. `GET …/entries` has the whole text.'
            ),
        ]
        | UnsetType
    ) = field(name='omittedChars', default=UNSET)


class TokenUsage(Struct):
    """
    The tokens of all calls of the model: the counts that the provider reports, also for answers that broke off. Without a report, one token counts for every four bytes of the request and of the answer.
    """

    input_tokens: int = field(name='inputTokens')
    cached_input_tokens: Annotated[int, Meta(description='How many of the input tokens the provider had cached.')] = field(
        name='cachedInputTokens'
    )
    output_tokens: int = field(name='outputTokens')
    reasoning_tokens: Annotated[int, Meta(description='How many of the output tokens were spent on reasoning.')] = field(
        name='reasoningTokens'
    )
    cache_write_input_tokens: (
        Annotated[
            int,
            Meta(
                description="How many of the input tokens were written to the provider's cache."
            ),
        ]
        | UnsetType
    ) = field(name='cacheWriteInputTokens', default=UNSET)
    estimated_calls: (
        Annotated[
            int,
            Meta(
                description='How many of the calls have estimated figures, because the provider reported no figures or the answer broke off.'
            ),
        ]
        | UnsetType
    ) = field(name='estimatedCalls', default=UNSET)


class ToolCall(Struct, tag_field='type', tag='tool-call'):
    type: ClassVar[Literal['tool-call']] = 'tool-call'
    name: str
    input: Any
    output: str
    status: Literal['completed', 'failed', 'cancelled']


class ToolCallData(Struct):
    call_id: str = field(name='callId')
    name: str
    input: Any
    omitted_chars: (
        Annotated[
            int,
            Meta(
                description='Only in events, which have only the beginning of a long text: the number of characters that are left out. Of an `input`, the beginning of its JSON is sent. `GET …/entries` has the whole text.'
            ),
        ]
        | UnsetType
    ) = field(name='omittedChars', default=UNSET)


class ToolCallEvent(Struct, tag_field='type', tag='tool-call'):
    type: ClassVar[Literal['tool-call']] = 'tool-call'
    session_id: str = field(name='sessionId')
    time: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
    data: ToolCallData
    run_id: str | UnsetType = field(name='runId', default=UNSET)
    missed: (
        Annotated[
            bool,
            Meta(
                description='The event happened while you were disconnected, after the event that you named.'
            ),
        ]
        | UnsetType
    ) = UNSET
    id: str = ''


class ToolCallPart(Struct, tag_field='type', tag='tool-call'):
    type: ClassVar[Literal['tool-call']] = 'tool-call'
    call_id: str = field(name='callId')
    name: str
    input: Annotated[
        Any,
        Meta(description='An object, or text when the model did not write valid JSON.'),
    ]
    omitted_chars: (
        Annotated[
            int,
            Meta(
                description='Only in events, which have only the beginning of a long text: the number of characters that are left out. Of an `input`, the beginning of its JSON is sent. `GET …/entries` has the whole text.'
            ),
        ]
        | UnsetType
    ) = field(name='omittedChars', default=UNSET)


class ToolImage(Struct):
    mimetype: str
    asset_id: Annotated[str, Meta(description='The id of an asset of the run.')] = (
        field(name='assetId')
    )


class ToolResultData(Struct):
    call_id: str = field(name='callId')
    output: str
    status: Literal['completed', 'failed', 'cancelled']
    omitted_chars: (
        Annotated[
            int,
            Meta(
                description='Only in events, which have only the beginning of a long text: the number of characters that are left out. Of an `input`, the beginning of its JSON is sent. `GET …/entries` has the whole text.'
            ),
        ]
        | UnsetType
    ) = field(name='omittedChars', default=UNSET)


class ToolResultEvent(Struct, tag_field='type', tag='tool-result'):
    type: ClassVar[Literal['tool-result']] = 'tool-result'
    session_id: str = field(name='sessionId')
    time: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
    data: ToolResultData
    run_id: str | UnsetType = field(name='runId', default=UNSET)
    missed: (
        Annotated[
            bool,
            Meta(
                description='The event happened while you were disconnected, after the event that you named.'
            ),
        ]
        | UnsetType
    ) = UNSET
    id: str = ''


class ToolResultPart(Struct, tag_field='type', tag='tool-result'):
    type: ClassVar[Literal['tool-result']] = 'tool-result'
    call_id: str = field(name='callId')
    name: str
    status: Literal['completed', 'failed', 'cancelled']
    output: str
    images: list[ToolImage]
    omitted_chars: (
        Annotated[
            int,
            Meta(
                description='Only in events, which have only the beginning of a long text: the number of characters that are left out. Of an `input`, the beginning of its JSON is sent. `GET …/entries` has the whole text.'
            ),
        ]
        | UnsetType
    ) = field(name='omittedChars', default=UNSET)
    touched_cells: (
        Annotated[
            list[str],
            Meta(
                description='The ids of the cells that the call created, changed, deleted or had to run: the first 100. Absent when there are none, or when the call was interrupted before they were known.'
            ),
        ]
        | UnsetType
    ) = field(name='touchedCells', default=UNSET)


class TrinoConnection(Struct, tag_field='kind', tag='trino'):
    """
    A Trino or Starburst coordinator, over its HTTP protocol.
    """

    kind: ClassVar[Literal['trino']] = 'trino'
    url: Annotated[
        str,
        Meta(
            description='Base URL of the server: scheme, host and port, nothing else. With `https` the certificate is checked; `http` is not encrypted.'
        ),
    ]
    catalog: Annotated[
        str, Meta(description='Catalog that is used where a statement names none.')
    ]
    schema: Annotated[
        str, Meta(description='Schema that is used where a statement names none.')
    ]
    user: Annotated[str, Meta(description='Name of the account in the database.')]
    password: (
        Annotated[
            str, Meta(description='Password of the user. It is sent over `https` only.')
        ]
        | UnsetType
    ) = UNSET
    ca_certificate: (
        Annotated[
            str,
            Meta(
                description='Certificates in PEM. They replace the certificates of the system when the certificate of the database server is checked.'
            ),
        ]
        | UnsetType
    ) = UNSET


class VariablesData(Struct):
    variables: list[StreamedVariable]


class VariablesEvent(Struct, tag_field='type', tag='variables'):
    type: ClassVar[Literal['variables']] = 'variables'
    session_id: str = field(name='sessionId')
    time: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
    data: VariablesData
    run_id: str | UnsetType = field(name='runId', default=UNSET)
    missed: (
        Annotated[
            bool,
            Meta(
                description='The event happened while you were disconnected, after the event that you named.'
            ),
        ]
        | UnsetType
    ) = UNSET
    id: str = ''


class WorkerState(Struct):
    worker: Annotated[
        int,
        Meta(
            description='The number of the worker. A worker that replaces another one has a new number.'
        ),
    ]
    started_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='startedAt'
    )
    pid: int
    cpu_seconds: Annotated[float, Meta(description='Processor time since the process began. Divide the difference between two responses by the time between them to get the use.')] = field(
        name='cpuSeconds'
    )
    memory_bytes: Annotated[int, Meta(description='Resident memory. A memory page that several processes share counts in each of them. The figure of the server does not include the mapped pages of the store.')] = field(
        name='memoryBytes'
    )
    heap_bytes: Annotated[int, Meta(description='Bytes.')] = field(name='heapBytes')
    event_loop: EventLoopState = field(name='eventLoop')
    kernels: Annotated[
        int, Meta(description='Kernels of the sessions whose home is this worker.')
    ]
    requests: int
    streams: int


class Workspace(Struct):
    id: str
    name: str
    created_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='createdAt'
    )


class WorkspaceLimits(Struct):
    workspace_id: str = field(name='workspaceId')
    sessions: int | None
    runs: int | None
    streams: int | None
    files_mb: int | None = field(name='filesMb')
    files: int | None
    jobs: int | None
    sessions_per_user: int | None = field(name='sessionsPerUser')
    runs_per_user: int | None = field(name='runsPerUser')
    set: Annotated[
        list[str],
        Meta(
            description='The names of the limits that are set for this workspace. All other limits come from the settings of the server.'
        ),
    ]
    updated_at: str | None = field(name='updatedAt')
    updated_by: str | None = field(name='updatedBy')


class WorkspacePackage(Struct):
    name: Annotated[
        str,
        Meta(
            description='The normal form of the name of the package: lower case, with hyphens.'
        ),
    ]
    requirement: str
    created_by: Annotated[str, Meta(description='The id of the user who added the package.')] = field(
        name='createdBy'
    )
    created_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='createdAt'
    )


class WorkspacePackageList(Struct):
    items: Annotated[list[WorkspacePackage], Meta(description='All packages, by name.')]
    enabled: Annotated[bool, Meta(description='Whether this server installs packages.')]
    installation: PackageInstallation | None


class WorkspacePage(Struct):
    items: list[Workspace]
    next_cursor: (
        Annotated[
            str,
            Meta(
                description='The `after` of the next page; null when there are no more items.'
            ),
        ]
        | None
    ) = field(name='nextCursor')


class WorkspaceUsage(Struct):
    files: FileUsage
    stored: StoredUsage
    models: ModelUsagePage


class AccessToken(Struct):
    id: str
    name: str
    user_id: Annotated[str, Meta(description='Chosen when the user is first added, for example a mail address. `.` and `..` are not allowed, because clients could not request their paths.')] = field(
        name='userId'
    )
    workspace_id: (
        Annotated[
            str,
            Meta(
                description='The only workspace for which the token is valid; null means every workspace of its user.'
            ),
        ]
        | None
    ) = field(name='workspaceId')
    scopes: list[Scope]
    created_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='createdAt'
    )
    created_by: Annotated[str, Meta(description='Chosen when the user is first added, for example a mail address. `.` and `..` are not allowed, because clients could not request their paths.')] = field(
        name='createdBy'
    )
    expires_at: str | None = field(name='expiresAt')


class AccessTokenPage(Struct):
    items: list[AccessToken]
    next_cursor: (
        Annotated[
            str,
            Meta(
                description='The `after` of the next page; null when there are no more items.'
            ),
        ]
        | None
    ) = field(name='nextCursor')


class Actor(Struct):
    kind: Annotated[str, Meta(description='Such as `notebook-session` or `run`.')]
    id: str
    machine: Annotated[
        str,
        Meta(
            description='The id of the statechart of the actor, for `GET /api/v3/charts/{machine}`.'
        ),
    ]
    presence: Annotated[
        Literal['live', 'stored', 'ended', 'failed'],
        Meta(
            description='Whether the actor is in memory (`live`), only in the store, or in its final state. An error of the server has removed a `failed` actor from memory; its next use restores it.'
        ),
    ]
    state: Annotated[Any, Meta(description='The state value of its statechart.')]
    path: Annotated[
        str, Meta(description='The state as a path, such as `live.busy.running`.')
    ]
    since: Annotated[str, Meta(description='When the actor last changed its state.')]
    revision: Annotated[int, Meta(description='How many transitions were stored.')]
    links: list[ActorLink]
    last_events: list[ActorEvent] = field(name='lastEvents')


class ActorDetail(Struct):
    kind: Annotated[str, Meta(description='Such as `notebook-session` or `run`.')]
    id: str
    machine: Annotated[
        str,
        Meta(
            description='The id of the statechart of the actor, for `GET /api/v3/charts/{machine}`.'
        ),
    ]
    presence: Annotated[
        Literal['live', 'stored', 'ended', 'failed'],
        Meta(
            description='Whether the actor is in memory (`live`), only in the store, or in its final state. An error of the server has removed a `failed` actor from memory; its next use restores it.'
        ),
    ]
    state: Annotated[Any, Meta(description='The state value of its statechart.')]
    path: Annotated[
        str, Meta(description='The state as a path, such as `live.busy.running`.')
    ]
    since: Annotated[str, Meta(description='When the actor last changed its state.')]
    revision: Annotated[int, Meta(description='How many transitions were stored.')]
    links: list[ActorLink]
    created_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='createdAt'
    )
    context: Annotated[
        dict[str, Any],
        Meta(
            description='Facts about the actor, but never code, prompts or credentials.'
        ),
    ]
    trail: Annotated[
        list[ActorTrailEntry],
        Meta(
            description='The last 32 events since the actor came into memory, oldest first.'
        ),
    ]
    takes: Annotated[
        list[str],
        Meta(
            description='The types of the events that the actor takes in its state. For a type that `refuses` lists as well, the data of the event decides.'
        ),
    ]
    refuses: Annotated[
        list[ActorRefusal],
        Meta(description='The events that the actor refuses in its state, and why.'),
    ]


class ActorPage(Struct):
    items: list[Actor]
    next_cursor: str | None = field(name='nextCursor')
    counts: Annotated[
        list[ActorCount],
        Meta(
            description='The number of actors of each kind in each state, whatever the `kind` and `state` of the query.'
        ),
    ]
    silent_workers: (
        Annotated[
            int,
            Meta(
                description='In a server of several workers: how many workers did not answer within five seconds. Their data are missing here.'
            ),
        ]
        | UnsetType
    ) = field(name='silentWorkers', default=UNSET)


ActorStreamEvent: TypeAlias = ActorsSnapshotEvent | ActorsCountsEvent | ActorsReplayedEvent | ActorsResyncRequiredEvent | ActorMovedEvent | ActorRefusedEvent | ActorLeftEvent


class AddedPackages(Struct):
    items: Annotated[
        list[WorkspacePackage],
        Meta(description='All packages of the workspace, by name.'),
    ]
    installed: Annotated[
        list[InstalledPackage],
        Meta(
            description='All packages that notebooks of the workspace have in addition to those of the server, dependencies included.'
        ),
    ]
    open_sessions: Annotated[list[str], Meta(description='Sessions whose kernel was started before the installation. They get the packages when they are opened again.')] = field(
        name='openSessions'
    )


AgentEntryPart: TypeAlias = TextPart | ReasoningPart | ToolCallPart | ToolResultPart


class AgentSessionPage(Struct):
    items: list[AgentSessionSummary]
    next_cursor: (
        Annotated[
            str,
            Meta(
                description='The `after` of the next page; null when there are no more items.'
            ),
        ]
        | None
    ) = field(name='nextCursor')


class AuditEntry(Struct):
    id: str
    created_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='createdAt'
    )
    user_id: Annotated[str, Meta(description='The user who carried out the action.')] = field(
        name='userId'
    )
    token_id: Annotated[str, Meta(description='Empty for a query by a notebook.')] = (
        field(name='tokenId')
    )
    action: Annotated[
        str, Meta(description='The action, such as `member.add` or `datasource.query`.')
    ]
    target: Annotated[
        str, Meta(description='The id or the slug of the object of the action.')
    ]
    outcome: Literal['done', 'failed', 'refused']
    detail: str | None
    address: Annotated[
        str,
        Meta(
            description='The IP address that the request came from; empty for a query.'
        ),
    ]
    request_id: Annotated[str, Meta(description='Empty for a query.')] = field(
        name='requestId'
    )
    query: AuditedQuery | UnsetType = UNSET


class AuditPage(Struct):
    items: list[AuditEntry]
    next_cursor: (
        Annotated[
            str,
            Meta(
                description='The `after` of the next page; null when there are no more items.'
            ),
        ]
        | None
    ) = field(name='nextCursor')


CellChange: TypeAlias = CreateCell | DeleteCell | MoveCell | SetCellCode | SetCellName | SetCellConfig


class CellsRegisteredData(Struct):
    cells: list[RegisteredCell]
    order: list[str]


class CellsRegisteredEvent(Struct, tag_field='type', tag='cells-registered'):
    type: ClassVar[Literal['cells-registered']] = 'cells-registered'
    session_id: str = field(name='sessionId')
    time: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
    data: CellsRegisteredData
    run_id: str | UnsetType = field(name='runId', default=UNSET)
    missed: (
        Annotated[
            bool,
            Meta(
                description='The event happened while you were disconnected, after the event that you named.'
            ),
        ]
        | UnsetType
    ) = UNSET
    id: str = ''


class ChangeCells(Struct):
    changes: Annotated[
        list[CellChange],
        Meta(description='The changes are made in this order: all of them, or none.'),
    ]
    expected_updated_at: (
        Annotated[
            str,
            Meta(
                description='The `updatedAt` of the notebook as you know it. The request is refused if anything in the notebook has changed since. Without this member, only the `version` of each change is compared.'
            ),
        ]
        | UnsetType
    ) = field(name='expectedUpdatedAt', default=UNSET)


class ConnectionTest(Struct):
    ok: bool
    message: Annotated[
        str,
        Meta(
            description='A general text without details of the connection or the driver.'
        ),
    ]
    elapsed_ms: float = field(name='elapsedMs')
    warnings: (
        Annotated[
            list[DatasourceWarning],
            Meta(
                description='Warnings about the rights of the account, because agents will use it, for kinds of databases without a read-only mode (mssql, snowflake, databricks, trino). Present in responses to a successful test, and to creating and replacing a datasource; absent when there are none.'
            ),
        ]
        | UnsetType
    ) = UNSET


class CreatedAccessToken(Struct):
    id: str
    name: str
    user_id: Annotated[str, Meta(description='Chosen when the user is first added, for example a mail address. `.` and `..` are not allowed, because clients could not request their paths.')] = field(
        name='userId'
    )
    workspace_id: (
        Annotated[
            str,
            Meta(
                description='The only workspace for which the token is valid; null means every workspace of its user.'
            ),
        ]
        | None
    ) = field(name='workspaceId')
    scopes: list[Scope]
    created_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='createdAt'
    )
    created_by: Annotated[str, Meta(description='Chosen when the user is first added, for example a mail address. `.` and `..` are not allowed, because clients could not request their paths.')] = field(
        name='createdBy'
    )
    expires_at: str | None = field(name='expiresAt')
    token: Annotated[
        str, Meta(description='The token itself. It is never returned again.')
    ]


class CreatedHook(Struct):
    id: str
    url: Annotated[
        str,
        Meta(
            description='The URL to which the events are posted. Everybody who may read the hook sees it, so it should contain no secret.'
        ),
    ]
    events: list[Literal['run.completed', 'run.failed', 'run.cancelled', 'job.failed', 'job.skipped', 'job.paused', 'session.failed']]
    filter: HookFilterOutput
    name: str | None
    paused: bool
    status: Annotated[
        Literal['idle', 'due', 'sending', 'backing-off', 'paused'],
        Meta(
            description='`idle`: nothing waits. `due`: a delivery waits. `sending`. `backing-off`: a delivery has failed and is sent again after a pause. `paused`.'
        ),
    ]
    reason: HookReason | None
    pending: Annotated[int, Meta(description='How many deliveries wait.')]
    older_secret_until: str | None = field(name='olderSecretUntil')
    owner_id: Annotated[str, Meta(description='The user with whose rights the hook learns of events.')] = field(
        name='ownerId'
    )
    created_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='createdAt'
    )
    updated_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='updatedAt'
    )
    secret: Annotated[
        str,
        Meta(
            description='The secret that signs the requests of the hook, in the form of Standard Webhooks. It is shown only in this answer.'
        ),
    ]


class Datasource(Struct):
    id: str
    slug: str
    kind: str
    name: str | None
    revision: Annotated[
        int,
        Meta(
            description='Increases with each replacement of the connection. A new datasource with the same slug starts at 1 again.'
        ),
    ]
    configured: Annotated[
        bool,
        Meta(
            description='Whether a connection is stored, whatever the result of the last test.'
        ),
    ]
    embedded: Annotated[
        bool,
        Meta(
            description='Whether the database runs inside the server, on files of the workspace.'
        ),
    ]
    created_by: Annotated[str, Meta(description='The id of the user who made this resource.')] = field(
        name='createdBy'
    )
    created_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='createdAt'
    )
    updated_at: Annotated[str, Meta(description='When the connection of the datasource was last replaced.')] = field(
        name='updatedAt'
    )
    warnings: (
        Annotated[
            list[DatasourceWarning],
            Meta(
                description='Warnings about the rights of the account, because agents will use it, for kinds of databases without a read-only mode (mssql, snowflake, databricks, trino). Present in responses to a successful test, and to creating and replacing a datasource; absent when there are none.'
            ),
        ]
        | UnsetType
    ) = UNSET


DatasourceConnection: TypeAlias = Annotated[
    PostgresConnection | MysqlConnection | MariadbConnection | ClickhouseConnection | DuckdbConnection | SqliteConnection | FilesConnection | SnowflakeConnection | BigqueryConnection | MssqlConnection | RedshiftConnection | DatabricksConnection | TrinoConnection,
    Meta(
        description='How a database is reached. `kind` selects the connector, which defines the other members. Members that are `writeOnly` are secret: they are stored sealed and never returned.'
    ),
]


class DatasourcePage(Struct):
    items: list[Datasource]
    next_cursor: (
        Annotated[
            str,
            Meta(
                description='The `after` of the next page; null when there are no more items.'
            ),
        ]
        | None
    ) = field(name='nextCursor')


class DatasourceReplacement(Struct):
    connection: DatasourceConnection
    name: str | None | UnsetType = UNSET
    test_connection: (
        Annotated[
            bool,
            Meta(
                description='Whether to test the connection first. When the test fails, nothing is saved. Default: `false`.'
            ),
        ]
        | UnsetType
    ) = field(name='testConnection', default=UNSET)


class Failure(Struct):
    code: FailureCode
    message: Annotated[str, Meta(description='One sentence for people.')]
    cells: (
        Annotated[list[str], Meta(description='The ids of the cells at fault.')]
        | UnsetType
    ) = UNSET


class Hook(Struct):
    id: str
    url: Annotated[
        str,
        Meta(
            description='The URL to which the events are posted. Everybody who may read the hook sees it, so it should contain no secret.'
        ),
    ]
    events: list[Literal['run.completed', 'run.failed', 'run.cancelled', 'job.failed', 'job.skipped', 'job.paused', 'session.failed']]
    filter: HookFilterOutput
    name: str | None
    paused: bool
    status: Annotated[
        Literal['idle', 'due', 'sending', 'backing-off', 'paused'],
        Meta(
            description='`idle`: nothing waits. `due`: a delivery waits. `sending`. `backing-off`: a delivery has failed and is sent again after a pause. `paused`.'
        ),
    ]
    reason: HookReason | None
    pending: Annotated[int, Meta(description='How many deliveries wait.')]
    older_secret_until: str | None = field(name='olderSecretUntil')
    owner_id: Annotated[str, Meta(description='The user with whose rights the hook learns of events.')] = field(
        name='ownerId'
    )
    created_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='createdAt'
    )
    updated_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='updatedAt'
    )


class HookChange(Struct):
    expected_updated_at: Annotated[str, Meta(description='The `updatedAt` of your last read of the hook. When the hook has changed since: 409 `stale_update`.')] = field(
        name='expectedUpdatedAt'
    )
    url: (
        Annotated[
            str,
            Meta(
                description='The URL to which the events are posted. Everybody who may read the hook sees it, so it should contain no secret.'
            ),
        ]
        | UnsetType
    ) = UNSET
    events: list[Literal['run.completed', 'run.failed', 'run.cancelled', 'job.failed', 'job.skipped', 'job.paused', 'session.failed']] | UnsetType = (
        UNSET
    )
    filter: HookFilter | UnsetType = UNSET
    name: str | None | UnsetType = UNSET
    paused: (
        Annotated[
            bool,
            Meta(
                description='Whether the hook sends nothing. Events during a pause are not sent later.'
            ),
        ]
        | UnsetType
    ) = UNSET


class HookDelivery(Struct):
    id: Annotated[
        str, Meta(description='The `webhook-id` of every attempt of this delivery.')
    ]
    hook_id: str = field(name='hookId')
    event: Annotated[
        str, Meta(description='The type of the event; `hook.test` for a test.')
    ]
    status: Literal['pending', 'delivered', 'dead']
    attempts: Annotated[int, Meta(description='How many requests have begun.')]
    response_status: int | None = field(name='responseStatus')
    response: str | None
    reason: HookReason | None
    payload: Annotated[
        str,
        Meta(
            description='The body of the request: JSON with `type`, `timestamp` and `data`.'
        ),
    ]
    queued_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='queuedAt'
    )
    last_attempt_at: str | None = field(name='lastAttemptAt')
    next_attempt_at: str | None = field(name='nextAttemptAt')
    finished_at: str | None = field(name='finishedAt')
    created_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='createdAt'
    )


class HookDeliveryPage(Struct):
    items: list[HookDelivery]
    next_cursor: (
        Annotated[
            str,
            Meta(
                description='The `after` of the next page; null when there are no more items.'
            ),
        ]
        | None
    ) = field(name='nextCursor')


class HookPage(Struct):
    items: list[Hook]
    next_cursor: (
        Annotated[
            str,
            Meta(
                description='The `after` of the next page; null when there are no more items.'
            ),
        ]
        | None
    ) = field(name='nextCursor')


class ImportedNotebook(Struct):
    id: str
    title: str | None
    created_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='createdAt'
    )
    updated_at: Annotated[str, Meta(description='Strictly increasing. Pass it as `expectedUpdatedAt` to change the notebook.')] = field(
        name='updatedAt'
    )
    serialization: Serialization
    datasource_slugs: list[str] = field(name='datasourceSlugs')
    variables: dict[str, str]
    url: Annotated[
        str,
        Meta(
            description='The address of the notebook in a browser, for people who have signed in there; others sign in first. A path below the address of the server, or a whole URL if the setting `TROUPE_PUBLIC_URL` is set.'
        ),
    ]
    created_by: (
        Annotated[
            str,
            Meta(
                description='The id of the user who made this resource. Absent when no user has made it.'
            ),
        ]
        | UnsetType
    ) = field(name='createdBy', default=UNSET)
    updated_by: (
        Annotated[
            str,
            Meta(
                description='The id of the user who made the last change. Absent when no user has made it.'
            ),
        ]
        | UnsetType
    ) = field(name='updatedBy', default=UNSET)
    metadata: (
        Annotated[
            dict[str, str],
            Meta(
                description='The pairs of texts that were attached to the resource. Absent when there are none.'
            ),
        ]
        | UnsetType
    ) = UNSET
    warnings: (
        Annotated[
            list[ImportWarning],
            Meta(
                description='Requests of the file that the import did not carry out. Absent when there are none.'
            ),
        ]
        | UnsetType
    ) = UNSET


class JobChange(Struct):
    expected_updated_at: Annotated[str, Meta(description='The `updatedAt` of your last read of the job. When the job has changed since: 409 `stale_update`.')] = field(
        name='expectedUpdatedAt'
    )
    schedule: Schedule | UnsetType = UNSET
    name: str | None | UnsetType = UNSET
    time_zone: (
        Annotated[
            str,
            Meta(
                description='The name of a time zone, such as `Europe/Berlin`. It applies to `cron`.'
            ),
        ]
        | UnsetType
    ) = field(name='timeZone', default=UNSET)
    arguments: (
        Annotated[
            list[str],
            Meta(
                description='Command-line arguments, as after `--` in `marimo run notebook.py --`: `["--month=3"]` is `{"month": 3}` in `mo.cli_args()`. The list is also `sys.argv[1:]`.'
            ),
        ]
        | UnsetType
    ) = UNSET
    timeout_s: int | None | UnsetType = field(name='timeoutS', default=UNSET)
    overlap: (
        Annotated[
            Literal['skip', 'queue', 'cancel'],
            Meta(
                description='What happens with an instant that comes during an occurrence. `skip`, the default: it is skipped with the reason `overlap`. `queue`: one instant waits, fires when the occurrence is over, and further ones are skipped. `cancel`: the occurrence is cancelled with the reason `superseded`, and the instant fires then.'
            ),
        ]
        | UnsetType
    ) = UNSET
    catch_up: (
        Annotated[
            Literal['last', 'none', 'all'],
            Meta(
                description='What happens with instants that passed while the server was not running. `last`, the default: the last of them fires, and the earlier ones are skipped. `none`: instants that are more than a minute late are skipped. `all`: the last hundred of them fire one after another, the oldest first, and the earlier ones are skipped.'
            ),
        ]
        | UnsetType
    ) = field(name='catchUp', default=UNSET)
    retries: (
        Annotated[
            int,
            Meta(
                description='How often an occurrence is attempted again after an end that is not the fault of the notebook, such as a lost kernel or a limit of sessions. The first pause is 30 seconds, and each further pause is twice as long. The default is 2.'
            ),
        ]
        | UnsetType
    ) = UNSET
    retry_on: (
        Annotated[
            Literal['server', 'all'],
            Meta(
                description='Which ends are attempted again. `server`, the default: ends that are not the fault of the notebook. `all`: each failure, also one of a cell.'
            ),
        ]
        | UnsetType
    ) = field(name='retryOn', default=UNSET)
    outputs: (
        Annotated[
            list[Literal['html']],
            Meta(
                description='What is kept of each run besides its outputs. `html`: the notebook as a static page, which the occurrence names as its `report`. For notebooks on a session of their own.'
            ),
        ]
        | UnsetType
    ) = UNSET
    metadata: (
        Annotated[
            dict[str, str],
            Meta(
                description='Up to 16 pairs of texts of your own, for example a project or a ticket. Keys have up to 64 letters, digits, dots, underscores and hyphens, and values up to 500 characters. Everybody who can read the resource can read the pairs.',
                max_length=16,
            ),
        ]
        | UnsetType
    ) = UNSET
    paused: (
        Annotated[
            bool, Meta(description='Whether the job fires only when a person fires it.')
        ]
        | UnsetType
    ) = UNSET
    take_over: (
        Annotated[
            bool,
            Meta(
                description='Makes you the owner of the job, which then works with your rights. For owners of the workspace.'
            ),
        ]
        | UnsetType
    ) = field(name='takeOver', default=UNSET)


class JobOccurrence(Struct):
    id: str
    job_id: str = field(name='jobId')
    trigger: Annotated[
        Literal['schedule', 'person', 'hook'],
        Meta(description='Whether the schedule, a person or a hook has fired the job.'),
    ]
    due_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = (
        field(name='dueAt')
    )
    status: Annotated[
        Literal['queued', 'due', 'running', 'backing-off', 'completed', 'failed', 'cancelled', 'skipped'],
        Meta(
            description='`queued`: waits for the occurrence before it. `due`: has begun, and its run has not. `backing-off`: is attempted again after a pause.'
        ),
    ]
    reason: JobReason | None
    attempts: Annotated[int, Meta(description='How many attempts have begun.')]
    run_id: str | None = field(name='runId')
    started_at: str | None = field(name='startedAt')
    finished_at: str | None = field(name='finishedAt')
    last_due_at: (
        Annotated[
            str,
            Meta(
                description='Present when this one record stands for all instants from `dueAt` to this one. They passed before the last hundred missed instants.'
            ),
        ]
        | UnsetType
    ) = field(name='lastDueAt', default=UNSET)
    fired_by: (
        Annotated[str, Meta(description='The user who has fired the job.')] | UnsetType
    ) = field(name='firedBy', default=UNSET)
    hook_in_id: (
        Annotated[str, Meta(description='The hook that has fired the job.')] | UnsetType
    ) = field(name='hookInId', default=UNSET)
    arguments: (
        Annotated[
            list[str],
            Meta(
                description='Arguments of this occurrence alone, after those of the job: the body of the request to a hook.'
            ),
        ]
        | UnsetType
    ) = UNSET
    report: JobReport | UnsetType = UNSET


class JobOccurrencePage(Struct):
    items: list[JobOccurrence]
    next_cursor: (
        Annotated[
            str,
            Meta(
                description='The `after` of the next page; null when there are no more items.'
            ),
        ]
        | None
    ) = field(name='nextCursor')


class KernelList(Struct):
    sampled_at: Annotated[str, Meta(description='When the use was measured. All requests share a measurement for half a second; with many processes, for up to five seconds.')] = field(
        name='sampledAt'
    )
    memory_limit_bytes: int | None = field(name='memoryLimitBytes')
    items: Annotated[
        list[KernelUsage], Meta(description='The kernels, with the most memory first.')
    ]
    silent_workers: (
        Annotated[
            int,
            Meta(
                description='In a server of several workers: how many workers did not answer within five seconds. Their data are missing here.'
            ),
        ]
        | UnsetType
    ) = field(name='silentWorkers', default=UNSET)


class Member(Struct):
    user_id: Annotated[str, Meta(description='Chosen when the user is first added, for example a mail address. `.` and `..` are not allowed, because clients could not request their paths.')] = field(
        name='userId'
    )
    role: Role
    name: str | None
    created_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='createdAt'
    )
    updated_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='updatedAt'
    )


class MemberChange(Struct):
    role: Role | UnsetType = UNSET
    name: str | None | UnsetType = UNSET


class MemberPage(Struct):
    items: list[Member]
    next_cursor: (
        Annotated[
            str,
            Meta(
                description='The `after` of the next page; null when there are no more items.'
            ),
        ]
        | None
    ) = field(name='nextCursor')


class ModelList(Struct):
    default_model: str | None = field(name='defaultModel')
    items: list[ModelProvider]


class NewAccessToken(Struct):
    name: str
    scopes: list[Scope]
    user_id: (
        Annotated[
            str,
            Meta(
                description='Chosen when the user is first added, for example a mail address. `.` and `..` are not allowed, because clients could not request their paths.'
            ),
        ]
        | UnsetType
    ) = field(name='userId', default=UNSET)
    expires_at: str | None | UnsetType = field(name='expiresAt', default=UNSET)


class NewDatasource(Struct):
    slug: Annotated[
        str, Meta(description='Case-sensitive; starts with a letter or a digit.')
    ]
    connection: DatasourceConnection
    name: str | None | UnsetType = UNSET
    test_connection: (
        Annotated[
            bool,
            Meta(
                description='Whether to test the connection first. When the test fails, nothing is saved. Default: `false`.'
            ),
        ]
        | UnsetType
    ) = field(name='testConnection', default=UNSET)


class NewJob(Struct):
    target: JobTarget
    schedule: Schedule
    name: str | None | UnsetType = UNSET
    time_zone: (
        Annotated[
            str,
            Meta(
                description='The name of a time zone, such as `Europe/Berlin`. It applies to `cron`.'
            ),
        ]
        | UnsetType
    ) = field(name='timeZone', default=UNSET)
    arguments: (
        Annotated[
            list[str],
            Meta(
                description='Command-line arguments, as after `--` in `marimo run notebook.py --`: `["--month=3"]` is `{"month": 3}` in `mo.cli_args()`. The list is also `sys.argv[1:]`.'
            ),
        ]
        | UnsetType
    ) = UNSET
    timeout_s: int | None | UnsetType = field(name='timeoutS', default=UNSET)
    overlap: (
        Annotated[
            Literal['skip', 'queue', 'cancel'],
            Meta(
                description='What happens with an instant that comes during an occurrence. `skip`, the default: it is skipped with the reason `overlap`. `queue`: one instant waits, fires when the occurrence is over, and further ones are skipped. `cancel`: the occurrence is cancelled with the reason `superseded`, and the instant fires then.'
            ),
        ]
        | UnsetType
    ) = UNSET
    catch_up: (
        Annotated[
            Literal['last', 'none', 'all'],
            Meta(
                description='What happens with instants that passed while the server was not running. `last`, the default: the last of them fires, and the earlier ones are skipped. `none`: instants that are more than a minute late are skipped. `all`: the last hundred of them fire one after another, the oldest first, and the earlier ones are skipped.'
            ),
        ]
        | UnsetType
    ) = field(name='catchUp', default=UNSET)
    retries: (
        Annotated[
            int,
            Meta(
                description='How often an occurrence is attempted again after an end that is not the fault of the notebook, such as a lost kernel or a limit of sessions. The first pause is 30 seconds, and each further pause is twice as long. The default is 2.'
            ),
        ]
        | UnsetType
    ) = UNSET
    retry_on: (
        Annotated[
            Literal['server', 'all'],
            Meta(
                description='Which ends are attempted again. `server`, the default: ends that are not the fault of the notebook. `all`: each failure, also one of a cell.'
            ),
        ]
        | UnsetType
    ) = field(name='retryOn', default=UNSET)
    outputs: (
        Annotated[
            list[Literal['html']],
            Meta(
                description='What is kept of each run besides its outputs. `html`: the notebook as a static page, which the occurrence names as its `report`. For notebooks on a session of their own.'
            ),
        ]
        | UnsetType
    ) = UNSET
    metadata: (
        Annotated[
            dict[str, str],
            Meta(
                description='Up to 16 pairs of texts of your own, for example a project or a ticket. Keys have up to 64 letters, digits, dots, underscores and hyphens, and values up to 500 characters. Everybody who can read the resource can read the pairs.',
                max_length=16,
            ),
        ]
        | UnsetType
    ) = UNSET
    paused: (
        Annotated[
            bool, Meta(description='Whether the job fires only when a person fires it.')
        ]
        | UnsetType
    ) = UNSET


class NewMember(Struct):
    user_id: Annotated[str, Meta(description='Chosen when the user is first added, for example a mail address. `.` and `..` are not allowed, because clients could not request their paths.')] = field(
        name='userId'
    )
    role: Role
    name: str | None | UnsetType = UNSET


class NewNotebook(Struct):
    title: str | None | UnsetType = UNSET
    serialization: NewSerialization | UnsetType = UNSET
    datasource_slugs: (
        Annotated[
            list[str],
            Meta(
                description='Slugs of datasources. The server checks at their use whether they exist.'
            ),
        ]
        | UnsetType
    ) = field(name='datasourceSlugs', default=UNSET)
    variables: (
        Annotated[
            dict[str, str],
            Meta(
                description="Environment variables of the notebook's kernel, readable for everybody who can read the notebook. Secrets have an operation of their own."
            ),
        ]
        | UnsetType
    ) = UNSET
    metadata: (
        Annotated[
            dict[str, str],
            Meta(
                description='Up to 16 pairs of texts of your own, for example a project or a ticket. Keys have up to 64 letters, digits, dots, underscores and hyphens, and values up to 500 characters. Everybody who can read the resource can read the pairs.',
                max_length=16,
            ),
        ]
        | UnsetType
    ) = UNSET


class Node(Struct):
    name: str
    state: Annotated[
        Literal['joined', 'draining', 'away'],
        Meta(
            description='`joined`: the node takes kernels. `draining`: the node is connected, but takes no new kernels. `away`: the node is not connected.'
        ),
    ]
    draining: Annotated[
        bool, Meta(description='Whether an operator wants no new kernels there.')
    ]
    problem: str | None
    kernels: int
    capacity: int | None
    memory_bytes: int | None = field(name='memoryBytes')
    free_memory_bytes: int | None = field(name='freeMemoryBytes')
    cores: int | None
    load: float | None
    confinement: str | None
    release: NodeRelease | None
    address: str | None
    enrolled_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='enrolledAt'
    )
    joined_at: str | None = field(name='joinedAt')


class NodeList(Struct):
    enabled: Annotated[
        bool, Meta(description='Whether kernels run on nodes (`TROUPE_KERNEL_NODES`).')
    ]
    waiting: Annotated[int, Meta(description='Kernels that wait for a node with room.')]
    engine: NodeEngine | None
    items: list[Node]


class Notebook(Struct):
    id: str
    title: str | None
    created_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='createdAt'
    )
    updated_at: Annotated[str, Meta(description='Strictly increasing. Pass it as `expectedUpdatedAt` to change the notebook.')] = field(
        name='updatedAt'
    )
    serialization: Serialization
    datasource_slugs: list[str] = field(name='datasourceSlugs')
    variables: dict[str, str]
    url: Annotated[
        str,
        Meta(
            description='The address of the notebook in a browser, for people who have signed in there; others sign in first. A path below the address of the server, or a whole URL if the setting `TROUPE_PUBLIC_URL` is set.'
        ),
    ]
    created_by: (
        Annotated[
            str,
            Meta(
                description='The id of the user who made this resource. Absent when no user has made it.'
            ),
        ]
        | UnsetType
    ) = field(name='createdBy', default=UNSET)
    updated_by: (
        Annotated[
            str,
            Meta(
                description='The id of the user who made the last change. Absent when no user has made it.'
            ),
        ]
        | UnsetType
    ) = field(name='updatedBy', default=UNSET)
    metadata: (
        Annotated[
            dict[str, str],
            Meta(
                description='The pairs of texts that were attached to the resource. Absent when there are none.'
            ),
        ]
        | UnsetType
    ) = UNSET


class NotebookPage(Struct):
    items: list[NotebookSummary]
    next_cursor: (
        Annotated[
            str,
            Meta(
                description='The `after` of the next page; null when there are no more items.'
            ),
        ]
        | None
    ) = field(name='nextCursor')


class NotebookSession(Struct):
    session_id: Annotated[str, Meta(description="The notebook's id.")] = field(
        name='sessionId'
    )
    notebook_id: str = field(name='notebookId')
    environment_id: str | None = field(name='environmentId')
    mode: Literal['edit', 'run']
    arguments: Annotated[
        list[str],
        Meta(
            description='Command-line arguments, as after `--` in `marimo run notebook.py --`: `["--month=3"]` is `{"month": 3}` in `mo.cli_args()`. The list is also `sys.argv[1:]`.'
        ),
    ]
    ttl_s: int | None = field(name='ttlS')
    idle_timeout_s: int | None = field(name='idleTimeoutS')
    expires_at: str | None = field(name='expiresAt')
    status: Literal['starting', 'ready', 'busy', 'restoring', 'failed', 'closing', 'closed']
    startup: Startup | None
    phases: Annotated[
        dict[str, float],
        Meta(
            description='The duration of each step of the last kernel start, in milliseconds.'
        ),
    ]
    current_run_id: str | None = field(name='currentRunId')
    cells: list[SessionCell]
    kernel: dict[str, Any] | None
    error: Failure | None
    created_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='createdAt'
    )
    updated_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='updatedAt'
    )
    url: Annotated[
        str,
        Meta(
            description='The address of the notebook in a browser, for people who have signed in there; others sign in first. A path below the address of the server, or a whole URL if the setting `TROUPE_PUBLIC_URL` is set.'
        ),
    ]
    metadata: (
        Annotated[
            dict[str, str],
            Meta(
                description='The pairs of texts that were attached to the resource. Absent when there are none.'
            ),
        ]
        | UnsetType
    ) = UNSET
    closed_by: (
        Annotated[
            str,
            Meta(
                description='The id of the user who closed this resource. Absent when it has ended by itself, or when the user is not known.'
            ),
        ]
        | UnsetType
    ) = field(name='closedBy', default=UNSET)


class NotebookSessionPage(Struct):
    items: list[NotebookSessionSummary]
    next_cursor: (
        Annotated[
            str,
            Meta(
                description='The `after` of the next page; null when there are no more items.'
            ),
        ]
        | None
    ) = field(name='nextCursor')


class NotebookSessionSnapshotEvent(Struct, tag_field='type', tag='session.snapshot'):
    type: ClassVar[Literal['session.snapshot']] = 'session.snapshot'
    session_id: str = field(name='sessionId')
    time: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
    data: NotebookSession
    run_id: str | UnsetType = field(name='runId', default=UNSET)
    resumed: (
        Annotated[
            bool,
            Meta(
                description='The events that you have missed follow, marked with `missed`; only then comes the current state.'
            ),
        ]
        | UnsetType
    ) = UNSET
    id: str = ''


class OutputTable(Struct):
    columns: list[OutputTableColumn]
    rows: Annotated[
        list[list[Any]],
        Meta(
            description='The first rows, at most 100. Integers beyond 2^53, decimals, dates and times are text; missing values are null.'
        ),
    ]
    row_count: Annotated[int, Meta(description='The number of rows of the whole table.')] = field(
        name='rowCount'
    )
    column_count: Annotated[int, Meta(description='The number of columns in the whole table; `columns` lists at most 100 of them, and the index.')] = field(
        name='columnCount'
    )


class OwnToken(Struct):
    id: str
    name: str
    workspace_id: (
        Annotated[
            str,
            Meta(
                description='The only workspace for which the token is valid; null means every workspace of its user.'
            ),
        ]
        | None
    ) = field(name='workspaceId')
    scopes: list[Scope]
    created_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='createdAt'
    )
    expires_at: str | None = field(name='expiresAt')


class OwnWorkspace(Struct):
    id: str
    name: str
    role: Role


class Problem(Struct):
    """
    A problem document (RFC 9457). Some codes have additional members.
    """

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: ErrorCode
    request_id: str = field(name='requestId')
    errors: (
        Annotated[
            list[ProblemPlace],
            Meta(description='The mistakes in the request, one by one.'),
        ]
        | UnsetType
    ) = UNSET


class RunStatusData(Struct):
    run_id: str = field(name='runId')
    status: RunStatus
    created_by: (
        Annotated[
            str,
            Meta(
                description='The id of the user who made this resource. Absent when no user has made it.'
            ),
        ]
        | UnsetType
    ) = field(name='createdBy', default=UNSET)
    stale: (
        Annotated[
            bool,
            Meta(
                description='The server ended during the run. Only cancelling ends such a run.'
            ),
        ]
        | UnsetType
    ) = UNSET
    error: Failure | None | UnsetType = UNSET


class RunStatusEvent(Struct, tag_field='type', tag='run-status'):
    type: ClassVar[Literal['run-status']] = 'run-status'
    session_id: str = field(name='sessionId')
    time: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
    data: RunStatusData
    run_id: str | UnsetType = field(name='runId', default=UNSET)
    missed: (
        Annotated[
            bool,
            Meta(
                description='The event happened while you were disconnected, after the event that you named.'
            ),
        ]
        | UnsetType
    ) = UNSET
    id: str = ''


class ServerLoadData(Struct):
    sampled_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='sampledAt'
    )
    process: ServerProcess
    kernel_host: KernelHostState = field(name='kernelHost')
    actors: Annotated[
        list[ActorCount],
        Meta(description='The actors of all workspaces that are in memory.'),
    ]
    requests: Annotated[
        int,
        Meta(description='Requests without a response so far, except event streams.'),
    ]
    streams: Annotated[int, Meta(description='Open event streams.')]
    warnings: Annotated[
        list[str],
        Meta(
            description='Problems that an operator should look at, as in `GET /readyz`. With several workers, the problems of all workers.'
        ),
    ]
    store: StoreState
    kernels: KernelTotals
    workers: (
        Annotated[
            list[WorkerState],
            Meta(
                description='The processes of a server of several workers, by number. Absent in a server of one process.'
            ),
        ]
        | UnsetType
    ) = UNSET
    silent_workers: (
        Annotated[
            int,
            Meta(
                description='In a server of several workers: how many workers did not answer within five seconds. Their data are missing here.'
            ),
        ]
        | UnsetType
    ) = field(name='silentWorkers', default=UNSET)


class ServerLoadEvent(Struct, tag_field='type', tag='server.load'):
    type: ClassVar[Literal['server.load']] = 'server.load'
    time: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
    data: ServerLoadData
    missed: (
        Annotated[
            bool,
            Meta(
                description='The event happened while you were disconnected, after the event that you named.'
            ),
        ]
        | UnsetType
    ) = UNSET
    id: str = ''


class ServerSnapshotData(Struct):
    started_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='startedAt'
    )
    versions: ServerVersions
    limits: ServerLimits


class ServerSnapshotEvent(Struct, tag_field='type', tag='server.snapshot'):
    type: ClassVar[Literal['server.snapshot']] = 'server.snapshot'
    time: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
    data: ServerSnapshotData
    resumed: (
        Annotated[
            bool,
            Meta(
                description='The events that you have missed follow, marked with `missed`.'
            ),
        ]
        | UnsetType
    ) = UNSET
    id: str = ''


class ServerState(Struct):
    started_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='startedAt'
    )
    versions: ServerVersions
    limits: ServerLimits
    sampled_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='sampledAt'
    )
    process: ServerProcess
    kernel_host: KernelHostState = field(name='kernelHost')
    actors: Annotated[
        list[ActorCount],
        Meta(description='The actors of all workspaces that are in memory.'),
    ]
    requests: Annotated[
        int,
        Meta(description='Requests without a response so far, except event streams.'),
    ]
    streams: Annotated[int, Meta(description='Open event streams.')]
    warnings: Annotated[
        list[str],
        Meta(
            description='Problems that an operator should look at, as in `GET /readyz`. With several workers, the problems of all workers.'
        ),
    ]
    store: StoreState
    kernels: list[KernelUsage]
    workers: (
        Annotated[
            list[WorkerState],
            Meta(
                description='The processes of a server of several workers, by number. Absent in a server of one process.'
            ),
        ]
        | UnsetType
    ) = UNSET
    silent_workers: (
        Annotated[
            int,
            Meta(
                description='In a server of several workers: how many workers did not answer within five seconds. Their data are missing here.'
            ),
        ]
        | UnsetType
    ) = field(name='silentWorkers', default=UNSET)


ServerStreamEvent: TypeAlias = ServerSnapshotEvent | ServerReplayedEvent | ServerLoadEvent | ServerResyncRequiredEvent


class UiValuesResult(Struct):
    session_id: str = field(name='sessionId')
    status: Annotated[
        Literal['completed', 'failed', 'cancelled'],
        Meta(
            description='`failed` when an element, a cell or the kernel failed. `cancelled` when the work was interrupted.'
        ),
    ]
    cells: Annotated[
        list[DependentCell],
        Meta(
            description='The cells that ran because of the new values, and how they ended. Their outputs are sent as events.'
        ),
    ]
    unknown: Annotated[
        list[str],
        Meta(
            description='The ids for which the kernel has no element. All other values were set.'
        ),
    ]
    failures: Annotated[
        list[ElementFailure],
        Meta(
            description='The elements that refused their value or whose `on_change` handler failed, each with the error of Python. The other values were set.'
        ),
    ]
    error: Failure | None


class AgentEntry(Struct):
    id: str
    role: Literal['user', 'assistant', 'tool']
    content: list[AgentEntryPart]
    run_id: str | None = field(name='runId')
    created_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='createdAt'
    )
    outcome: (
        Annotated[
            Literal['cancelled', 'failed', 'limit', 'stale'],
            Meta(
                description='Present only for a prompt whose run did not complete. `limit`: the run stopped at a limit for the steps, tokens or time of a prompt. `stale`: the server ended before the run did. Later requests to a model contain a note in place of the prompt and its answer. After a `limit` they contain prompt and answer, with a note that the run ended.'
            ),
        ]
        | UnsetType
    ) = UNSET


class AgentEntryEvent(Struct, tag_field='type', tag='agent-entry'):
    type: ClassVar[Literal['agent-entry']] = 'agent-entry'
    session_id: str = field(name='sessionId')
    time: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
    data: AgentEntry
    run_id: str | UnsetType = field(name='runId', default=UNSET)
    missed: (
        Annotated[
            bool,
            Meta(
                description='The event happened while you were disconnected, after the event that you named.'
            ),
        ]
        | UnsetType
    ) = UNSET
    id: str = ''


class AgentEntryPage(Struct):
    items: list[AgentEntry]
    next_cursor: (
        Annotated[
            str,
            Meta(
                description='The `after` of the next page; null when there are no more items.'
            ),
        ]
        | None
    ) = field(name='nextCursor')


class AgentSession(Struct):
    session_id: Annotated[str, Meta(description='The id of the conversation, or of its notebook when it is bound to one.')] = field(
        name='sessionId'
    )
    environment_id: str | None = field(name='environmentId')
    notebook_session_id: str | None = field(name='notebookSessionId')
    owner_id: Annotated[str, Meta(description='The user who owns the conversation: its creator (`createdBy`), until the conversation is handed over.')] = field(
        name='ownerId'
    )
    created_by: Annotated[str, Meta(description='The id of the user who made this resource.')] = field(
        name='createdBy'
    )
    status: Literal['ready', 'busy', 'closed']
    config: AgentConfig
    context: AgentContext
    current_run_id: str | None = field(name='currentRunId')
    created_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='createdAt'
    )
    updated_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='updatedAt'
    )
    entries: list[AgentEntry]
    closed_by: (
        Annotated[
            str,
            Meta(
                description='The id of the user who closed this resource. Absent when it has ended by itself, or when the user is not known.'
            ),
        ]
        | UnsetType
    ) = field(name='closedBy', default=UNSET)


class AgentSessionSnapshotEvent(Struct, tag_field='type', tag='session.snapshot'):
    type: ClassVar[Literal['session.snapshot']] = 'session.snapshot'
    session_id: str = field(name='sessionId')
    time: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
    data: AgentSession
    run_id: str | UnsetType = field(name='runId', default=UNSET)
    resumed: (
        Annotated[
            bool,
            Meta(
                description='The events that you have missed follow, marked with `missed`; only then comes the current state.'
            ),
        ]
        | UnsetType
    ) = UNSET
    id: str = ''


AgentStreamEvent: TypeAlias = SessionReplayedEvent | SessionResyncRequiredEvent | SessionClosedEvent | RunStatusEvent | AgentSessionSnapshotEvent | AgentSessionStatusEvent | AgentEntryEvent | TextDeltaEvent | ReasoningDeltaEvent | ToolCallEvent | ToolResultEvent


class CodeOutput(Struct):
    mimetype: str
    data: Any
    text: (
        Annotated[
            str,
            Meta(
                description='The output as text (`text/plain`), such as the `repr` of the value. Of a long text, only the beginning.'
            ),
        ]
        | UnsetType
    ) = UNSET
    table: OutputTable | UnsetType = UNSET


class CodeResult(Struct):
    success: Annotated[
        bool,
        Meta(
            description='False when the code, a cell that the code ran, or the kernel failed.'
        ),
    ]
    output: CodeOutput | None
    stdout: Annotated[
        str,
        Meta(
            description='The text that the code, and the cells that it ran, have printed. The middle of a very long text is left out.'
        ),
    ]
    stderr: str
    media: Annotated[
        list[CodeFigure],
        Meta(
            description='The figures that the code, and the cells that it ran, have shown, such as those of `plt.show()`: at most 100, with 16 MiB together.'
        ),
    ]
    errors: list[CodeError]


class ConnectionTestRequest(Struct):
    connection: DatasourceConnection


class Job(Struct):
    id: str
    target: JobTargetOutput
    name: str | None
    schedule: ScheduleOutput
    time_zone: Annotated[str, Meta(description='The name of a time zone, such as `Europe/Berlin`. It applies to `cron`.')] = field(
        name='timeZone'
    )
    arguments: Annotated[
        list[str],
        Meta(
            description='Command-line arguments, as after `--` in `marimo run notebook.py --`: `["--month=3"]` is `{"month": 3}` in `mo.cli_args()`. The list is also `sys.argv[1:]`.'
        ),
    ]
    timeout_s: int | None = field(name='timeoutS')
    overlap: Annotated[
        Literal['skip', 'queue', 'cancel'],
        Meta(
            description='What happens with an instant that comes during an occurrence. `skip`, the default: it is skipped with the reason `overlap`. `queue`: one instant waits, fires when the occurrence is over, and further ones are skipped. `cancel`: the occurrence is cancelled with the reason `superseded`, and the instant fires then.'
        ),
    ]
    catch_up: Annotated[Literal['last', 'none', 'all'], Meta(description='What happens with instants that passed while the server was not running. `last`, the default: the last of them fires, and the earlier ones are skipped. `none`: instants that are more than a minute late are skipped. `all`: the last hundred of them fire one after another, the oldest first, and the earlier ones are skipped.')] = field(
        name='catchUp'
    )
    retries: Annotated[
        int,
        Meta(
            description='How often an occurrence is attempted again after an end that is not the fault of the notebook, such as a lost kernel or a limit of sessions. The first pause is 30 seconds, and each further pause is twice as long. The default is 2.'
        ),
    ]
    retry_on: Annotated[Literal['server', 'all'], Meta(description='Which ends are attempted again. `server`, the default: ends that are not the fault of the notebook. `all`: each failure, also one of a cell.')] = field(
        name='retryOn'
    )
    outputs: Annotated[
        list[Literal['html']],
        Meta(
            description='What is kept of each run besides its outputs. `html`: the notebook as a static page, which the occurrence names as its `report`. For notebooks on a session of their own.'
        ),
    ]
    paused: bool
    status: Annotated[
        Literal['waiting', 'due', 'running', 'cancelling', 'backing-off', 'paused', 'ended'],
        Meta(
            description='`waiting` for its next instant. `due`: an occurrence has begun, and its run has not. `running`. `cancelling`: the run is being cancelled, because the next instant has come (`overlap`). `backing-off`: the occurrence is attempted again after a pause. `paused`. `ended`: the schedule has no further instant.'
        ),
    ]
    reason: JobReason | None
    failures: Annotated[
        int,
        Meta(
            description='How many occurrences in a row have failed. After five the job pauses itself, with the `reason`.'
        ),
    ]
    current_occurrence_id: str | None = field(name='currentOccurrenceId')
    last_occurrence: JobOccurrence | None = field(name='lastOccurrence')
    next: Annotated[
        list[str],
        Meta(description='The next five instants; none while the job is paused.'),
    ]
    owner_id: Annotated[str, Meta(description='The user with whose rights the job works.')] = field(
        name='ownerId'
    )
    created_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='createdAt'
    )
    updated_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='updatedAt'
    )
    metadata: (
        Annotated[
            dict[str, str],
            Meta(
                description='The pairs of texts that were attached to the resource. Absent when there are none.'
            ),
        ]
        | UnsetType
    ) = UNSET


class JobPage(Struct):
    items: list[Job]
    next_cursor: (
        Annotated[
            str,
            Meta(
                description='The `after` of the next page; null when there are no more items.'
            ),
        ]
        | None
    ) = field(name='nextCursor')


class Output(Struct):
    mimetype: str
    channel: (
        Annotated[
            Literal['stdout', 'stderr', 'stdin', 'pdb', 'output', 'media', 'marimo-error'],
            Meta(
                description='The channel to which the kernel wrote the output. Only console entries have a channel: printed text, or a figure.'
            ),
        ]
        | UnsetType
    ) = UNSET
    data: (
        Annotated[
            Any,
            Meta(
                description='The value: text, or JSON when the media type says so. Absent when there is an `assetId`.'
            ),
        ]
        | UnsetType
    ) = UNSET
    asset_id: (
        Annotated[
            str,
            Meta(
                description='The asset with a value that is too large for `data`. In a run the asset is read with `GET /api/v3/runs/{runId}/assets/{assetId}`, in an event with `GET /api/v3/notebook-sessions/{sessionId}/assets/{assetId}`.'
            ),
        ]
        | UnsetType
    ) = field(name='assetId', default=UNSET)
    text: (
        Annotated[
            str,
            Meta(
                description='The output as text (`text/plain`), such as the `repr` of the value. Of a long text, only the beginning.'
            ),
        ]
        | UnsetType
    ) = UNSET
    table: OutputTable | UnsetType = UNSET


class OwnAccount(Struct):
    user: OwnUser
    token: OwnToken
    workspaces: Annotated[
        list[OwnWorkspace],
        Meta(description='The workspaces that the token gives access to, by id.'),
    ]
    next_cursor: (
        Annotated[
            str,
            Meta(
                description='The `after` of the next page of workspaces; null when there are no more.'
            ),
        ]
        | None
    ) = field(name='nextCursor')


class CellOpData(Struct):
    cell_id: Annotated[str, Meta(description='`__scratch__` for scratchpad activity.')] = field(
        name='cellId'
    )
    status: Literal['idle', 'queued', 'running', 'stale', 'disabled', 'error'] | UnsetType = (
        UNSET
    )
    stale: bool | UnsetType = UNSET
    output: Output | None | UnsetType = UNSET
    console: (
        Annotated[
            list[Output],
            Meta(description='Entries to append; an empty list clears the console.'),
        ]
        | UnsetType
    ) = UNSET


class CellOpEvent(Struct, tag_field='type', tag='cell-op'):
    type: ClassVar[Literal['cell-op']] = 'cell-op'
    session_id: str = field(name='sessionId')
    time: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
    data: CellOpData
    run_id: str | UnsetType = field(name='runId', default=UNSET)
    missed: (
        Annotated[
            bool,
            Meta(
                description='The event happened while you were disconnected, after the event that you named.'
            ),
        ]
        | UnsetType
    ) = UNSET
    id: str = ''


class CellResult(Struct, tag_field='type', tag='cell-result'):
    type: ClassVar[Literal['cell-result']] = 'cell-result'
    cell_id: str = field(name='cellId')
    status: Literal['success', 'error', 'stopped', 'cancelled', 'interrupted', 'disabled']
    outputs: list[Output]
    console: Annotated[
        list[Output],
        Meta(
            description='The text that the cell printed (`stdout`, `stderr`), and the figures that it showed (`media`), in order. A large figure is an asset.'
        ),
    ]
    duration_ms: float | None = field(name='durationMs')


class ExecutionCompletedData(Struct):
    success: Annotated[
        bool,
        Meta(
            description='False when the code, a cell that the code ran, or the kernel failed.'
        ),
    ]
    output: Output | None
    stdout: Annotated[
        str,
        Meta(
            description='The text printed to stdout, without the middle of a long one; `console-output` has all of it.'
        ),
    ]
    stderr: Annotated[
        str,
        Meta(
            description='The text printed to stderr, without the middle of a long one; `console-output` has all of it.'
        ),
    ]
    media: Annotated[
        list[Output],
        Meta(description='The figures that were shown while the code ran.'),
    ]
    errors: list[CodeError]
    tool_call_id: (
        Annotated[str, Meta(description='The value in the request.')] | UnsetType
    ) = UNSET


class ExecutionCompletedEvent(Struct, tag_field='type', tag='execution-completed'):
    type: ClassVar[Literal['execution-completed']] = 'execution-completed'
    session_id: str = field(name='sessionId')
    time: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')]
    data: ExecutionCompletedData
    run_id: str | UnsetType = field(name='runId', default=UNSET)
    missed: (
        Annotated[
            bool,
            Meta(
                description='The event happened while you were disconnected, after the event that you named.'
            ),
        ]
        | UnsetType
    ) = UNSET
    id: str = ''


NotebookStreamEvent: TypeAlias = SessionReplayedEvent | SessionResyncRequiredEvent | SessionClosedEvent | RunStatusEvent | NotebookSessionSnapshotEvent | NotebookSessionStatusEvent | SessionStartupEvent | CellsRegisteredEvent | CellsDeletedEvent | CellOpEvent | ConsoleOutputEvent | VariablesEvent | ExecutionCompletedEvent | NotebookSavedEvent


OutputPart: TypeAlias = CellResult | AssistantMessage | ToolCall | FinalAnswer | RunWarning | RunAsset


class RunOutput(Struct):
    stored: Annotated[
        bool,
        Meta(
            description='False for `no-store`, and once the output was deleted because of its age (`TROUPE_KEEP_OUTPUTS_DAYS`). `parts` is empty then.'
        ),
    ]
    parts: list[OutputPart]
    model: (
        Annotated[str, Meta(description='The model that answered the prompt.')]
        | UnsetType
    ) = UNSET
    steps: (
        Annotated[int, Meta(description='How many times the model was asked.')]
        | UnsetType
    ) = UNSET
    usage: TokenUsage | UnsetType = UNSET


class SubmittedAgentRun(Struct):
    run_id: Annotated[str, Meta(description='The `id` of the run.')] = field(
        name='runId'
    )
    last_event_id: Annotated[str, Meta(description='Open an event stream of the session with this id as `Last-Event-ID` to get all events of the run, as long as the server keeps them.')] = field(
        name='lastEventId'
    )
    kind: Literal['agent']
    input: PromptRequestOutput
    id: str
    session_id: str = field(name='sessionId')
    status: RunStatus
    output: RunOutput | None
    error: Failure | None
    created_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='createdAt'
    )
    started_at: str | None = field(name='startedAt')
    finished_at: str | None = field(name='finishedAt')
    stale: (
        Annotated[
            bool,
            Meta(
                description='True when the server ended during the run. Only cancelling ends such a run.'
            ),
        ]
        | UnsetType
    ) = UNSET
    output_omitted: (
        Annotated[
            bool,
            Meta(
                description='True in lists that leave outputs out (`include`): `output` is then always null. Otherwise `output` is null while the run is running, and in a run that ended without output. In a `stale` run it contains the text that its cells had printed.'
            ),
        ]
        | UnsetType
    ) = field(name='outputOmitted', default=UNSET)
    metadata: (
        Annotated[
            dict[str, str],
            Meta(
                description='The pairs of texts that were attached to the resource. Absent when there are none.'
            ),
        ]
        | UnsetType
    ) = UNSET
    created_by: (
        Annotated[
            str,
            Meta(
                description='The id of the user who made this resource. Absent when no user has made it.'
            ),
        ]
        | UnsetType
    ) = field(name='createdBy', default=UNSET)


class SubmittedNotebookRun(Struct):
    run_id: Annotated[str, Meta(description='The `id` of the run.')] = field(
        name='runId'
    )
    last_event_id: Annotated[str, Meta(description='Open an event stream of the session with this id as `Last-Event-ID` to get all events of the run, as long as the server keeps them.')] = field(
        name='lastEventId'
    )
    kind: Literal['notebook']
    input: ExecutionRequestOutput
    id: str
    session_id: str = field(name='sessionId')
    status: RunStatus
    output: RunOutput | None
    error: Failure | None
    created_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='createdAt'
    )
    started_at: str | None = field(name='startedAt')
    finished_at: str | None = field(name='finishedAt')
    stale: (
        Annotated[
            bool,
            Meta(
                description='True when the server ended during the run. Only cancelling ends such a run.'
            ),
        ]
        | UnsetType
    ) = UNSET
    output_omitted: (
        Annotated[
            bool,
            Meta(
                description='True in lists that leave outputs out (`include`): `output` is then always null. Otherwise `output` is null while the run is running, and in a run that ended without output. In a `stale` run it contains the text that its cells had printed.'
            ),
        ]
        | UnsetType
    ) = field(name='outputOmitted', default=UNSET)
    metadata: (
        Annotated[
            dict[str, str],
            Meta(
                description='The pairs of texts that were attached to the resource. Absent when there are none.'
            ),
        ]
        | UnsetType
    ) = UNSET
    created_by: (
        Annotated[
            str,
            Meta(
                description='The id of the user who made this resource. Absent when no user has made it.'
            ),
        ]
        | UnsetType
    ) = field(name='createdBy', default=UNSET)


class AgentRun(Struct, tag_field='kind', tag='agent'):
    kind: ClassVar[Literal['agent']] = 'agent'
    input: PromptRequestOutput
    id: str
    session_id: str = field(name='sessionId')
    status: RunStatus
    output: RunOutput | None
    error: Failure | None
    created_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='createdAt'
    )
    started_at: str | None = field(name='startedAt')
    finished_at: str | None = field(name='finishedAt')
    stale: (
        Annotated[
            bool,
            Meta(
                description='True when the server ended during the run. Only cancelling ends such a run.'
            ),
        ]
        | UnsetType
    ) = UNSET
    output_omitted: (
        Annotated[
            bool,
            Meta(
                description='True in lists that leave outputs out (`include`): `output` is then always null. Otherwise `output` is null while the run is running, and in a run that ended without output. In a `stale` run it contains the text that its cells had printed.'
            ),
        ]
        | UnsetType
    ) = field(name='outputOmitted', default=UNSET)
    metadata: (
        Annotated[
            dict[str, str],
            Meta(
                description='The pairs of texts that were attached to the resource. Absent when there are none.'
            ),
        ]
        | UnsetType
    ) = UNSET
    created_by: (
        Annotated[
            str,
            Meta(
                description='The id of the user who made this resource. Absent when no user has made it.'
            ),
        ]
        | UnsetType
    ) = field(name='createdBy', default=UNSET)


class AgentRunPage(Struct):
    items: list[AgentRun]
    next_cursor: (
        Annotated[
            str,
            Meta(
                description='The `after` of the next page; null when there are no more items.'
            ),
        ]
        | None
    ) = field(name='nextCursor')


class NotebookRun(Struct, tag_field='kind', tag='notebook'):
    kind: ClassVar[Literal['notebook']] = 'notebook'
    input: ExecutionRequestOutput
    id: str
    session_id: str = field(name='sessionId')
    status: RunStatus
    output: RunOutput | None
    error: Failure | None
    created_at: Annotated[str, Meta(description='RFC 3339, in UTC, with milliseconds.')] = field(
        name='createdAt'
    )
    started_at: str | None = field(name='startedAt')
    finished_at: str | None = field(name='finishedAt')
    stale: (
        Annotated[
            bool,
            Meta(
                description='True when the server ended during the run. Only cancelling ends such a run.'
            ),
        ]
        | UnsetType
    ) = UNSET
    output_omitted: (
        Annotated[
            bool,
            Meta(
                description='True in lists that leave outputs out (`include`): `output` is then always null. Otherwise `output` is null while the run is running, and in a run that ended without output. In a `stale` run it contains the text that its cells had printed.'
            ),
        ]
        | UnsetType
    ) = field(name='outputOmitted', default=UNSET)
    metadata: (
        Annotated[
            dict[str, str],
            Meta(
                description='The pairs of texts that were attached to the resource. Absent when there are none.'
            ),
        ]
        | UnsetType
    ) = UNSET
    created_by: (
        Annotated[
            str,
            Meta(
                description='The id of the user who made this resource. Absent when no user has made it.'
            ),
        ]
        | UnsetType
    ) = field(name='createdBy', default=UNSET)


class NotebookRunPage(Struct):
    items: list[NotebookRun]
    next_cursor: (
        Annotated[
            str,
            Meta(
                description='The `after` of the next page; null when there are no more items.'
            ),
        ]
        | None
    ) = field(name='nextCursor')


Run: TypeAlias = NotebookRun | AgentRun


class RunPage(Struct):
    items: list[Run]
    next_cursor: (
        Annotated[
            str,
            Meta(
                description='The `after` of the next page; null when there are no more items.'
            ),
        ]
        | None
    ) = field(name='nextCursor')
