import { useSignal } from '@preact/signals';
import { ApiError } from '#src/contract/client/api-error.ts';
import type { Client } from '#src/contract/client/client.ts';
import type { Job, Occurrence } from '#src/contract/wire/job.ts';
import { Badge } from '../../parts/badge.tsx';
import { Empty, Loading } from '../../parts/empty.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Age } from '../../parts/time.tsx';
import { counted, duration } from '../../parts/words.ts';
import { useLoaded } from '../../state/loaded.ts';
import { go, linkTo } from '../../state/route.ts';
import { BASE_URL, comebacks } from '../../state/server.ts';
import { Dialog } from './dialog.tsx';
import { Heading } from './heading.tsx';
import { JobActions, PauseReason, type Viewer } from './job-actions.tsx';
import { JobForm } from './job-form.tsx';
import { JobHooks } from './job-hooks.tsx';
import { EVERY_MS, usePage } from './job-pages.tsx';
import { badgeOf, nameOf } from './job-words.ts';
import { scheduleText } from './schedule-choice.ts';
import { Instants } from './schedule-fields.tsx';
import { localTimeOf, zonedText } from './zoned-time.ts';

const PAGE_OCCURRENCES = 50;
/** What has started an occurrence. The name of the person follows. */
const TRIGGERS: Readonly<Record<Occurrence['trigger'], string>> = {
  schedule: 'By its schedule',
  person: 'Started by ',
  hook: 'Started by another program, at a hook',
};

interface JobPageProps {
  readonly viewer: Viewer;
  readonly jobId: string;
}

/** One job: its schedule, its state, its actions and its history. */
export function JobPage({ viewer, jobId }: JobPageProps) {
  const { client, workspace } = viewer;
  const loaded = useLoaded((signal) => client.jobs.get(jobId, { signal }), jobId, {
    changes: comebacks.value,
    everyMs: EVERY_MS,
  });
  const history = usePage(
    (after, signal) =>
      client.jobs.occurrences(jobId, { order: 'desc', limit: PAGE_OCCURRENCES, after, signal }),
    [jobId],
  );
  const edited = useSignal<Job | undefined>(undefined);
  const job = loaded.value;
  const reload = () => {
    loaded.reload();
    history.reload();
  };
  const list = linkTo(workspace.id, ['jobs']);
  const back = (
    <p>
      <a href={list}>All jobs</a>
    </p>
  );
  if (loaded.error instanceof ApiError && loaded.error.status === 404)
    return (
      <section aria-label="Job">
        {back}
        <Empty title="There is no such job in this workspace">It was deleted, or never existed.</Empty>
      </section>
    );
  if (job === undefined)
    return loaded.error === undefined ? <Loading /> : <Problem error={loaded.error} retry={loaded.reload} />;
  const { schedule, timeZone, next, status, target, ownerId, timeoutS, failures } = job;
  return (
    <section aria-labelledby="job">
      {back}
      <div class="job-title">
        <Heading id="job" title={nameOf(job)} />
        <Badge {...badgeOf(status)} />
      </div>
      {loaded.error !== undefined && <Problem error={loaded.error} retry={loaded.reload} />}
      <p>
        {scheduleText(schedule, timeZone)} (<bdi>{timeZone}</bdi>), with the rights of <bdi>{ownerId}</bdi>.{' '}
        {'notebookId' in target ? (
          <a href={`${BASE_URL}/n/${encodeURIComponent(target.notebookId)}/`}>The notebook</a>
        ) : (
          <a href={`${BASE_URL}/console${linkTo(workspace.id, ['agents', target.agentSessionId])}`}>
            The conversation
          </a>
        )}
      </p>
      {timeoutS !== null && <p>A run that takes longer than {duration(timeoutS * 1000)} is stopped.</p>}
      {failures > 0 && (
        <p class="bad">
          {failures === 1 ? 'The last run failed.' : `The last ${failures} runs in a row failed.`}
        </p>
      )}
      {job.paused && (
        <div class="paused">
          <PauseReason job={job} />
        </div>
      )}
      <JobActions
        viewer={viewer}
        job={job}
        changed={reload}
        deleted={() => go(list)}
        edit={() => {
          edited.value = job;
        }}
      />
      {next.length > 0 && <Instants next={next} timeZone={timeZone} />}
      <JobHooks viewer={viewer} job={job} />
      <h3 id="history">History</h3>
      {history.error !== undefined && <Problem error={history.error} retry={history.reload} />}
      {history.value?.items.length === 0 && <p class="faint">The job has not run yet.</p>}
      {history.value !== undefined && history.value.items.length > 0 && (
        <ol class="rows history" aria-labelledby="history">
          {history.value.items.map((occurrence) => (
            <li key={occurrence.id}>
              <OccurrenceRow client={client} occurrence={occurrence} job={job} workspaceId={workspace.id} />
            </li>
          ))}
        </ol>
      )}
      {history.buttons}
      {edited.value !== undefined && (
        <EditDialog
          client={client}
          job={edited.value}
          saved={reload}
          closed={() => {
            edited.value = undefined;
          }}
        />
      )}
    </section>
  );
}

interface EditDialogProps {
  readonly client: Client;
  /** The job as it was when the dialog was opened. A later change of somebody else must not slip into the form. */
  readonly job: Job;
  readonly saved: () => void;
  readonly closed: () => void;
}

function EditDialog({ client, job, saved, closed }: EditDialogProps) {
  return (
    <Dialog title="Edit the job" closed={closed}>
      {(close) => (
        <JobForm
          client={client}
          of={job}
          saved={() => {
            close();
            saved();
          }}
        />
      )}
    </Dialog>
  );
}

interface OccurrenceRowProps {
  readonly client: Client;
  readonly occurrence: Occurrence;
  readonly job: Job;
  readonly workspaceId: string;
}

function OccurrenceRow({ client, occurrence, job, workspaceId }: OccurrenceRowProps) {
  const { status, reason, dueAt, lastDueAt, trigger, firedBy, attempts, runId, startedAt, finishedAt } =
    occurrence;
  const { timeZone } = job;
  return (
    <div class="job">
      <div class="job-title">
        <span>
          <time dateTime={dueAt}>{zonedText(dueAt, timeZone)}</time>
          {lastDueAt !== undefined && (
            <>
              {' to '}
              <time dateTime={lastDueAt}>{zonedText(lastDueAt, timeZone)}</time>
            </>
          )}
        </span>
        <Badge {...badgeOf(status)} />
      </div>
      <p class="faint">
        {TRIGGERS[trigger]}
        {trigger === 'person' && <bdi>{firedBy ?? 'a person'}</bdi>}
        {startedAt !== null && (
          <>
            , {finishedAt === null ? 'for ' : 'took '}
            {finishedAt === null ? (
              <Age since={startedAt} />
            ) : (
              duration(Date.parse(finishedAt) - Date.parse(startedAt))
            )}
          </>
        )}
        {attempts > 1 && `, ${counted(attempts, 'attempt')}`}
        {runId !== null && (
          <>
            {', '}
            <a href={`${BASE_URL}/console${linkTo(workspaceId, ['runs', runId])}`}>its run</a>
          </>
        )}
      </p>
      <Report client={client} occurrence={occurrence} job={job} />
      {reason !== null && (
        <p class={status === 'failed' ? 'bad' : 'faint'}>
          <bdi>{reason.message}</bdi>
        </p>
      )}
    </div>
  );
}

interface ReportProps {
  readonly client: Client;
  readonly occurrence: Occurrence;
  /** Its name and the local date of the occurrence are the name of the file. */
  readonly job: Job;
}

/** The page that was kept of a run, as a download, or the reason why there is none. */
function Report({ client, occurrence, job }: ReportProps) {
  const { report, runId, dueAt } = occurrence;
  const error = useSignal<unknown>(undefined);
  if (report === undefined || runId === null) return null;
  if (report.reason !== null)
    return (
      <p class="faint">
        No page was kept: <bdi>{report.reason.message}</bdi>
      </p>
    );
  const download = async () => {
    error.value = undefined;
    try {
      const page = await client.jobs.report(occurrence);
      if (page === undefined) return;
      const { bytes, contentType } = page;
      const url = URL.createObjectURL(new Blob([bytes.slice()], { type: contentType }));
      const link = document.createElement('a');
      link.href = url;
      link.download = `${nameOf(job)} ${localTimeOf(Date.parse(dueAt), job.timeZone).slice(0, 10)}.html`;
      link.click();
      URL.revokeObjectURL(url);
    } catch (reason) {
      error.value = reason;
    }
  };
  return (
    <>
      <p>
        <button type="button" onClick={() => void download()}>
          Download its page
        </button>
      </p>
      {error.value !== undefined && <Problem error={error.value} />}
    </>
  );
}
