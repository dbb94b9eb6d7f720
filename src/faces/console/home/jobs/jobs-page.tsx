import { useRef } from 'preact/hooks';
import type { Job, Occurrence } from '#src/contract/wire/job.ts';
import { Badge } from '../../parts/badge.tsx';
import { Empty, Loading } from '../../parts/empty.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Age } from '../../parts/time.tsx';
import { linkTo } from '../../state/route.ts';
import { clientOf } from '../account.ts';
import { Heading } from './heading.tsx';
import { PausedJob, type Viewer } from './job-actions.tsx';
import { JobPage } from './job-page.tsx';
import { usePage } from './job-pages.tsx';
import { badgeOf, nameOf } from './job-words.ts';
import { scheduleText } from './schedule-choice.ts';
import { zonedText } from './zoned-time.ts';

const PAGE_ITEMS = 50;

type JobsProps = Omit<Viewer, 'client'> & {
  /** The job that is open; undefined for the list. */
  readonly jobId: string | undefined;
};

/** The jobs of a workspace, or one of them with its history. */
export function JobsView({ workspace, userId, jobId }: JobsProps) {
  const client = useRef(clientOf(workspace.id)).current;
  const viewer = { client, workspace, userId };
  return (
    <main class="jobs">
      {jobId === undefined ? (
        <JobList viewer={viewer} />
      ) : (
        <JobPage key={jobId} viewer={viewer} jobId={jobId} />
      )}
    </main>
  );
}

function JobList({ viewer }: { readonly viewer: Viewer }) {
  const { client, workspace } = viewer;
  const { value, error, reload, buttons } = usePage(
    (after, signal) => client.jobs.list({ order: 'desc', limit: PAGE_ITEMS, after, signal }),
    ['jobs'],
  );
  return (
    <section aria-labelledby="jobs">
      <Heading id="jobs" title="Jobs" />
      {error !== undefined && <Problem error={error} retry={reload} />}
      {value === undefined && error === undefined && <Loading />}
      {value?.items.length === 0 && (
        <Empty title="No jobs yet">
          A job runs a notebook by itself, for example every Monday at seven. Open a notebook and press
          Schedule.
        </Empty>
      )}
      {value !== undefined && value.items.length > 0 && (
        <ul class="rows" aria-label="Jobs">
          {value.items.map((job) => (
            <li key={job.id}>
              <div class="job">
                <div class="job-title">
                  <a href={linkTo(workspace.id, ['jobs', job.id])} dir="auto">
                    {nameOf(job)}
                  </a>
                  <Badge {...badgeOf(job.status)} />
                </div>
                <NextTime job={job} />
                {job.lastOccurrence !== null && <LastEnd occurrence={job.lastOccurrence} job={job} />}
                <PausedJob viewer={viewer} job={job} changed={reload} />
              </div>
            </li>
          ))}
        </ul>
      )}
      {buttons}
    </section>
  );
}

/** The schedule of a job in words, and its next instant in the time zone of the job. */
export function NextTime({ job: { schedule, timeZone, next } }: { readonly job: Job }) {
  const [first] = next;
  return (
    <p>
      {scheduleText(schedule, timeZone)} (<bdi>{timeZone}</bdi>)
      {first !== undefined && (
        <>
          , next <time dateTime={first}>{zonedText(first, timeZone)}</time>
        </>
      )}
    </p>
  );
}

function LastEnd({ occurrence, job }: { readonly occurrence: Occurrence; readonly job: Job }) {
  const { status, reason, finishedAt, dueAt } = occurrence;
  return (
    <p class="faint">
      Last: <Badge {...badgeOf(status)} />
      {finishedAt !== null && (
        <>
          {' '}
          <Age since={finishedAt} /> ago,
        </>
      )}{' '}
      due <time dateTime={dueAt}>{zonedText(dueAt, job.timeZone)}</time>
      {reason !== null && (
        <>
          . <bdi>{reason.message}</bdi>
        </>
      )}
    </p>
  );
}
