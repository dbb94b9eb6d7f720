# `npm run python-client` writes this file from `_async/resources.py`: do not edit it.
"""The objects of a workspace: notebooks, files, datasources, runs, jobs, hooks."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar
from urllib.parse import quote

import msgspec

from .._errors import ApiError
from ..models import (
    ConnectionTest,
    CreatedHook,
    CreatedHookIn,
    Datasource,
    DatasourceConnection,
    DatasourcePage,
    FileEntry,
    FilePage,
    Hook,
    HookDelivery,
    HookDeliveryPage,
    HookIn,
    HookInList,
    HookPage,
    Job,
    JobOccurrence,
    JobOccurrencePage,
    JobPage,
    Notebook,
    NotebookPage,
    NotebookSummary,
    NotebookVersion,
    NotebookVersionList,
    Run,
    RunPage,
    ScheduleInstants,
)
from .transport import Transport

T = TypeVar("T")
Cells = Mapping[str, str]
Schedule = str | Mapping[str, Any]


class Notebooks:
    """Saved notebooks."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
        self,
        *,
        cells: Cells | None = None,
        title: str | None = None,
        variables: Mapping[str, str] | None = None,
        datasources: Sequence[str] | None = None,
        **members: Any,
    ) -> Notebook:
        """
        Creates a notebook. `cells` has the code of each cell by its id, in order. `variables` are environment variables of
        its kernel. Further members of the body are keyword arguments, with the names of the API.
        """
        body = _fields(cells, title, variables, datasources, members)
        return self._transport.json("POST", "/api/v3/notebooks", Notebook, json=body)

    def get(self, notebook_id: str) -> Notebook:
        """Returns a notebook with its cells."""
        return self._transport.json("GET", _path("notebooks", notebook_id), Notebook)

    def update(
        self,
        notebook: Notebook,
        *,
        cells: Cells | None = None,
        title: str | None = None,
        variables: Mapping[str, str] | None = None,
        datasources: Sequence[str] | None = None,
        **members: Any,
    ) -> Notebook:
        """
        Replaces the given parts of a notebook. Raises `ApiError` with `stale_update` when it has changed since it was read,
        and with `session_open` while it has a session.
        """
        body = {"expectedUpdatedAt": notebook.updated_at, **_fields(cells, title, variables, datasources, members)}
        return self._transport.json("PATCH", _path("notebooks", notebook.id), Notebook, json=body)

    def delete(self, notebook: Notebook | str) -> None:
        """Deletes a notebook with its session, its conversation and its runs. Files of the workspace stay."""
        self._transport.request("DELETE", _path("notebooks", _id(notebook)))

    def import_file(self, content: str, *, format: Literal["py", "ipynb", "md"] = "py", title: str | None = None) -> Notebook:
        """Creates a notebook from the text of a file."""
        body = {"format": format, "content": content, **_given(title=title)}
        return self._transport.json("POST", "/api/v3/notebooks/import", Notebook, json=body)

    def export(self, notebook: Notebook | str, format: Literal["py", "ipynb", "md", "html"] = "py") -> bytes:
        """Returns the notebook as a file."""
        path = _path("notebooks", _id(notebook)) + "/export"
        return (self._transport.request("GET", path, query={"format": format})).content

    def versions(self, notebook: Notebook | str) -> Sequence[NotebookVersion]:
        """Returns the present version of a notebook and the earlier ones, the newest first."""
        path = _path("notebooks", _id(notebook)) + "/versions"
        return (self._transport.json("GET", path, NotebookVersionList)).items

    def version(self, notebook: Notebook | str, version: str) -> Notebook:
        """Returns a notebook as it was in the version that has this `updated_at`."""
        path = _version_path(_id(notebook), version)
        return self._transport.json("GET", path, Notebook)

    def restore(self, notebook: Notebook, version: str) -> Notebook:
        """
        Gives a notebook the content of an earlier version. Raises `ApiError` with `stale_update` when it has changed since it was
        read, and with `session_open` while it has a session.
        """
        path = _version_path(notebook.id, version) + "/restore"
        body = {"expectedUpdatedAt": notebook.updated_at}
        return self._transport.json("POST", path, Notebook, json=body)

    def url(self, notebook: Notebook | NotebookSummary) -> str:
        """Returns the address of a notebook in a browser, for people who have signed in there."""
        return self._transport.address(notebook.url)

    def each(self, **filters: Any) -> Iterator[NotebookSummary]:
        """Yields every notebook, the oldest first. Filters have the names of the API, such as `title`."""
        for page in _pages(self._transport, "/api/v3/notebooks", NotebookPage, filters):
            for item in page.items:
                yield item


class Files:
    """The files of the workspace: the working directory of its notebooks."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def read(self, path: str) -> bytes:
        """Returns the whole file."""
        return (self._transport.request("GET", _path("files", path, safe="/"))).content

    def write(self, path: str, content: bytes | str) -> None:
        """Stores a file, and makes the folders that are missing."""
        given = content.encode() if isinstance(content, str) else content
        headers = {"content-type": "application/octet-stream"}
        self._transport.request("PUT", _path("files", path, safe="/"), content=given, headers=headers)

    def delete(self, path: str) -> None:
        """Deletes a file; with a slash at the end of the path a folder, which must be empty."""
        self._transport.request("DELETE", _path("files", path, safe="/"))

    def each(self, prefix: str = "") -> Iterator[FileEntry]:
        """Yields the files and folders whose paths begin with `prefix`, without the contents of the folders."""
        for page in _pages(self._transport, "/api/v3/files", FilePage, {"prefix": prefix}):
            for item in page.items:
                yield item


class Datasources:
    """Connections to databases, which notebooks use by their slugs. Credentials are never returned."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
        self,
        slug: str,
        connection: DatasourceConnection | Mapping[str, Any],
        *,
        name: str | None = None,
        test_connection: bool = False,
    ) -> Datasource:
        """Stores a connection. With `test_connection` it is stored only if it works."""
        body = {"slug": slug, "connection": connection, "testConnection": test_connection, **_given(name=name)}
        return self._transport.json("POST", "/api/v3/datasources", Datasource, json=body)

    def get(self, slug: str) -> Datasource:
        """Returns the description of a datasource, without its connection."""
        return self._transport.json("GET", _path("datasources", slug), Datasource)

    def replace(
        self, slug: str, connection: DatasourceConnection | Mapping[str, Any], *, test_connection: bool = False
    ) -> Datasource:
        """Replaces the whole connection."""
        body = {"connection": connection, "testConnection": test_connection}
        return self._transport.json("PUT", _path("datasources", slug), Datasource, json=body)

    def delete(self, slug: str) -> None:
        """Deletes a datasource and its grants."""
        self._transport.request("DELETE", _path("datasources", slug))

    def test(self, slug: str) -> ConnectionTest:
        """Connects to the database. Returns also when that fails: `ok` says whether it worked."""
        try:
            return self._transport.json("POST", _path("datasources", slug) + "/test", ConnectionTest, json={})
        except ApiError as error:
            body = error.body()
            if error.status == 400 and isinstance(body, dict) and "ok" in body:
                return msgspec.convert(body, ConnectionTest)
            raise

    def each(self) -> Iterator[Datasource]:
        """Yields every datasource that the caller may use."""
        for page in _pages(self._transport, "/api/v3/datasources", DatasourcePage, {}):
            for item in page.items:
                yield item


class Runs:
    """Runs of notebooks and agents. They stay readable after their sessions have closed."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get(self, run_id: str, *, wait: int = 0) -> Run:
        """Returns a run; with `wait` once it has ended or so many seconds, at most 300, have passed."""
        # `Run` is an alias of a union, which is no type for type checkers.
        run: Run = self._transport.json("GET", _path("runs", run_id), Run, wait=wait)  # type: ignore[arg-type]
        return run

    def cancel(self, run_id: str) -> None:
        """Begins to cancel a run. Does nothing when it has ended."""
        try:
            self._transport.request("POST", _path("runs", run_id) + "/cancel", json={})
        except ApiError as error:
            if error.code != "run_finished":
                raise

    def delete(self, run_id: str) -> None:
        """Deletes a run that has ended, with its output and its assets."""
        self._transport.request("DELETE", _path("runs", run_id))

    def asset(self, run_id: str, asset_id: str) -> bytes:
        """Returns an output that is too large for the record of its run."""
        return (self._transport.request("GET", f"{_path('runs', run_id)}/assets/{quote(asset_id, safe='')}")).content

    def each(self, **filters: Any) -> Iterator[Run]:
        """
        Yields the runs of the workspace, the oldest first, without outputs unless `include="output"`. Filters are those of the
        API, such as `createdBy="ada"` and `status=["completed", "failed"]`. With `finishedAfter` or `finishedBefore` these are the
        ended runs in the order of their ends.
        """
        for page in _pages(self._transport, "/api/v3/runs", RunPage, filters):
            for item in page.items:
                yield item


class Jobs:
    """Jobs, which run notebooks at the instants of a schedule."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
        self,
        notebook: Notebook | str,
        schedule: Schedule,
        *,
        time_zone: str | None = None,
        name: str | None = None,
        arguments: Sequence[str] | None = None,
        timeout: int | None = None,
        target: Mapping[str, Any] | None = None,
        **members: Any,
    ) -> Job:
        """
        Creates a job that runs a notebook. `schedule` is an expression of cron such as `"0 7 * * MON"`, whose times are those of
        `time_zone` (UTC when it is not given), or `{"everyS": 900}`, or `{"at": "2027-01-01T06:00:00Z"}`. A run ends after
        `timeout` seconds. `target` has further members of the target, such as `cells`. Further members of the body are keyword
        arguments, with the names of the API. `next` of the result has the next five instants.
        """
        body = {
            "target": {"notebookId": _id(notebook), **(target or {})},
            "schedule": _schedule(schedule),
            **_given(timeZone=time_zone, name=name, arguments=arguments, timeoutS=timeout),
            **members,
        }
        return self._transport.json("POST", "/api/v3/jobs", Job, json=body)

    def preview(self, schedule: Schedule, *, time_zone: str | None = None) -> Sequence[str]:
        """Returns the next five instants of a schedule, and creates nothing."""
        body = {"schedule": _schedule(schedule), **_given(timeZone=time_zone)}
        return (self._transport.json("POST", "/api/v3/jobs/preview", ScheduleInstants, json=body)).next

    def get(self, job: Job | str) -> Job:
        """Returns a job with its state, its next instants, and the reason why it is paused."""
        return self._transport.json("GET", _path("jobs", _job_id(job)), Job)

    def update(self, job: Job, **members: Any) -> Job:
        """
        Replaces the given members of a job, which have the names of the API. Raises `ApiError` with `stale_update` when the job has
        changed since it was read.
        """
        body = {"expectedUpdatedAt": job.updated_at, **members}
        return self._transport.json("PATCH", _path("jobs", job.id), Job, json=body)

    def pause(self, job: Job | str) -> Job:
        """Pauses a job: it fires only when somebody fires it. An occurrence in progress is finished."""
        return self.update(self.get(job), paused=True)

    def resume(self, job: Job | str) -> Job:
        """Resumes a job, beginning with its next instant after now."""
        return self.update(self.get(job), paused=False)

    def run(self, job: Job | str) -> JobOccurrence:
        """
        Fires a job now, and returns the occurrence, which has begun, or was skipped with a reason. Raises `ApiError` with
        `job_running` while an occurrence is in progress.
        """
        return self._transport.json("POST", _path("jobs", _job_id(job)) + "/run", JobOccurrence, json={})

    def delete(self, job: Job | str) -> None:
        """Deletes a job with its history. Its runs are kept."""
        self._transport.request("DELETE", _path("jobs", _job_id(job)))

    def history(self, job: Job | str, *, order: Literal["asc", "desc"] = "desc") -> Iterator[JobOccurrence]:
        """Yields the occurrences of a job, the newest first: what ran, failed, or was skipped and why."""
        path = _path("jobs", _job_id(job)) + "/occurrences"
        for page in _pages(self._transport, path, JobOccurrencePage, {"order": order}):
            for item in page.items:
                yield item

    def each(self, **filters: Any) -> Iterator[Job]:
        """Yields every job, the oldest first. Filters have the names of the API, such as `notebookId`."""
        for page in _pages(self._transport, "/api/v3/jobs", JobPage, filters):
            for item in page.items:
                yield item


class Hooks:
    """Hooks, which tell other servers of events, and hooks in, at which other programs fire a job."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
        self,
        url: str,
        events: Sequence[str],
        *,
        notebook: Notebook | str | None = None,
        job: Job | str | None = None,
        metadata: Mapping[str, str] | None = None,
        name: str | None = None,
        **members: Any,
    ) -> CreatedHook:
        """
        Creates a hook that posts events, such as `"run.failed"`, to a URL. `notebook`, `job` and `metadata` limit the events. `secret`
        of the result checks the requests, and is not shown again. Further members of the body are keyword arguments, with the
        names of the API.
        """
        filters = _given(
            notebookId=None if notebook is None else _id(notebook),
            jobId=None if job is None else _job_id(job),
            metadata=metadata,
        )
        body = {"url": url, "events": events, "filter": filters, **_given(name=name), **members}
        return self._transport.json("POST", "/api/v3/hooks", CreatedHook, json=body)

    def get(self, hook: Hook | CreatedHook | str) -> Hook:
        """Returns a hook with its state, and the reason why it is paused."""
        return self._transport.json("GET", _hook_path(hook), Hook)

    def update(self, hook: Hook | CreatedHook, **members: Any) -> Hook:
        """
        Replaces the given members of a hook, which have the names of the API. Raises `ApiError` with `stale_update` when the hook
        has changed since it was read.
        """
        body = {"expectedUpdatedAt": hook.updated_at, **members}
        return self._transport.json("PATCH", _hook_path(hook), Hook, json=body)

    def pause(self, hook: Hook | CreatedHook | str) -> Hook:
        """Pauses a hook: it sends nothing, and events during the pause are not sent later."""
        return self.update(self.get(hook), paused=True)

    def resume(self, hook: Hook | CreatedHook | str) -> Hook:
        """Resumes a hook, which sends the deliveries that had waited before the pause."""
        return self.update(self.get(hook), paused=False)

    def rotate(self, hook: Hook | CreatedHook | str) -> CreatedHook:
        """Gives a hook a new secret, which is not shown again. The secret before signs, too, for 24 hours."""
        return self._transport.json("POST", _hook_path(hook) + "/rotate", CreatedHook, json={})

    def test(self, hook: Hook | CreatedHook | str) -> HookDelivery:
        """Sends a test to the receiver of a hook, and returns the delivery, which waits."""
        return self._transport.json("POST", _hook_path(hook) + "/test", HookDelivery, json={})

    def deliveries(
        self, hook: Hook | CreatedHook | str, *, order: Literal["asc", "desc"] = "desc"
    ) -> Iterator[HookDelivery]:
        """Yields the deliveries of a hook, the newest first: what was sent, when, and with which answer."""
        for page in _pages(self._transport, _hook_path(hook) + "/deliveries", HookDeliveryPage, {"order": order}):
            for item in page.items:
                yield item

    def replay(self, delivery: HookDelivery) -> HookDelivery:
        """Sends a delivery again, with its id, and returns it. A delivery that waits is not changed."""
        path = f"{_hook_path(delivery.hook_id)}/deliveries/{quote(delivery.id, safe='')}/replay"
        return self._transport.json("POST", path, HookDelivery, json={})

    def delete(self, hook: Hook | CreatedHook | str) -> None:
        """Deletes a hook with its deliveries."""
        self._transport.request("DELETE", _hook_path(hook))

    def each(self, **filters: Any) -> Iterator[Hook]:
        """Yields every hook, the oldest first."""
        for page in _pages(self._transport, "/api/v3/hooks", HookPage, filters):
            for item in page.items:
                yield item

    def create_in(self, job: Job | str, *, name: str | None = None) -> CreatedHookIn:
        """
        Creates a hook at whose `url` other programs fire a job. They need its `secret`, which is not shown again. The URL is a path
        unless the server knows its public URL.
        """
        path = _path("jobs", _job_id(job)) + "/hooks-in"
        return self._transport.json("POST", path, CreatedHookIn, json=_given(name=name))

    def each_in(self, job: Job | str) -> Iterator[HookIn]:
        """Yields the hooks at which other programs fire a job, the oldest first."""
        path = _path("jobs", _job_id(job)) + "/hooks-in"
        for item in (self._transport.json("GET", path, HookInList)).items:
            yield item

    def delete_in(self, hook: HookIn | CreatedHookIn) -> None:
        """Deletes a hook that fires a job: its secret is worth nothing at once."""
        path = f"{_path('jobs', hook.job_id)}/hooks-in/{quote(hook.id, safe='')}"
        self._transport.request("DELETE", path)


def _pages(transport: Transport, path: str, type: type[T], filters: Mapping[str, Any]) -> Iterator[T]:
    after: str | None = None
    while True:
        page: Any = transport.json("GET", path, type, query={**filters, "after": after})
        yield page
        after = page.next_cursor
        if not isinstance(after, str):
            return


def _fields(
    cells: Cells | None,
    title: str | None,
    variables: Mapping[str, str] | None,
    datasources: Sequence[str] | None,
    members: Mapping[str, Any],
) -> dict[str, Any]:
    serialization = None if cells is None else {"cells": [{"cell_id": id, "code": code} for id, code in cells.items()]}
    return {
        **_given(serialization=serialization, title=title, variables=variables, datasourceSlugs=datasources),
        **members,
    }


def _given(**members: Any) -> dict[str, Any]:
    return {name: member for name, member in members.items() if member is not None}


def _id(notebook: Notebook | str) -> str:
    return notebook if isinstance(notebook, str) else notebook.id


def _job_id(job: Job | str) -> str:
    return job if isinstance(job, str) else job.id


def _hook_path(hook: Hook | CreatedHook | str) -> str:
    return _path("hooks", hook if isinstance(hook, str) else hook.id)


def _schedule(schedule: Schedule) -> Mapping[str, Any]:
    return {"cron": schedule} if isinstance(schedule, str) else schedule


def _path(collection: str, id: str, safe: str = "") -> str:
    # URLs drop these segments, so the request would lead to another operation.
    if any(segment in (".", "..") for segment in id.split("/")):
        raise ValueError(f"Not a path: {id}")
    return f"/api/v3/{collection}/{quote(id, safe=safe)}"


def _version_path(notebook_id: str, version: str) -> str:
    return _path(_path("notebooks", notebook_id).removeprefix("/api/v3/") + "/versions", version)
