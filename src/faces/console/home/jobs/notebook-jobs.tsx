import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { OwnAccount } from '#src/contract/wire/identity.ts';
import type { Job } from '#src/contract/wire/job.ts';
import { pathOf } from '#src/contract/wire/paths.ts';
import { Badge } from '../../parts/badge.tsx';
import { Loading } from '../../parts/empty.tsx';
import { Problem } from '../../parts/problem.tsx';
import { useLoaded } from '../../state/loaded.ts';
import { linkTo } from '../../state/route.ts';
import { BASE_URL, request } from '../../state/server.ts';
import { clientOf } from '../account.ts';
import { Dialog } from './dialog.tsx';
import { JobForm } from './job-form.tsx';
import { EVERY_MS } from './job-pages.tsx';
import { badgeOf, nameOf } from './job-words.ts';
import { NextTime } from './jobs-page.tsx';
import { zonedText } from './zoned-time.ts';

/** The most jobs of one notebook that its dialog shows. The page of jobs has all. */
const MAX_JOBS = 20;

interface NotebookJobsProps {
  readonly workspaceId: string;
  readonly notebookId: string;
  readonly title: string;
  readonly closed: () => void;
}

/** The dialog with the jobs of a notebook, and the form for a new one. */
export function NotebookJobs(props: NotebookJobsProps) {
  const account = useSignal<OwnAccount | 'nobody' | undefined>(undefined);
  const error = useSignal<unknown>(undefined);
  useEffect(() => {
    // Not by the client, which leads a person who has not signed in away from the notebook with its unsaved text.
    request(`${BASE_URL}${pathOf('getMe', {})}?limit=100`)
      .then(async (response) => {
        account.value = response.ok ? await response.json() : 'nobody';
      })
      .catch((reason: unknown) => {
        error.value = reason;
      });
  }, []);
  return (
    <Dialog title="Schedule this notebook" closed={props.closed}>
      {() => (
        <>
          {account.value === undefined && error.value === undefined && <Loading />}
          {error.value !== undefined && <Problem error={error.value} />}
          {account.value === 'nobody' && (
            <p>
              <a href={`${BASE_URL}/sign-in?to=${encodeURIComponent(new URL(location.href).pathname)}`}>
                Sign in
              </a>{' '}
              to schedule this notebook.
            </p>
          )}
          {typeof account.value === 'object' && <Jobs {...props} account={account.value} />}
        </>
      )}
    </Dialog>
  );
}

function Jobs({
  workspaceId,
  notebookId,
  title,
  account,
}: NotebookJobsProps & { readonly account: OwnAccount }) {
  const client = useRef(clientOf(workspaceId)).current;
  const made = useSignal<Job | undefined>(undefined);
  /** Whether the form is shown; undefined until the jobs are known. A job of somebody else must not take the form away. */
  const isAdding = useSignal<boolean | undefined>(undefined);
  const { value, error, reload } = useLoaded(
    (signal) => client.jobs.list({ notebookId, order: 'desc', limit: MAX_JOBS, signal }),
    notebookId,
    { everyMs: EVERY_MS },
  );
  if (value === undefined)
    return error === undefined ? <Loading /> : <Problem error={error} retry={reload} />;
  const isViewer = account.workspaces.some(({ id, role }) => id === workspaceId && role === 'viewer');
  const { items } = value;
  isAdding.value ??= items.length === 0;
  const isFormShown = !isViewer && isAdding.value;
  return (
    <>
      {made.value !== undefined && <Made job={made.value} workspaceId={workspaceId} />}
      {items.length > 0 && (
        <section aria-labelledby="notebook-jobs">
          <h3 id="notebook-jobs">Jobs of this notebook</h3>
          <ul>
            {items.map((job) => (
              <li key={job.id}>
                <div class="job-title">
                  <a href={jobLink(workspaceId, job)} dir="auto">
                    {nameOf(job)}
                  </a>
                  <Badge {...badgeOf(job.status)} />
                </div>
                <NextTime job={job} />
              </li>
            ))}
          </ul>
          {value.nextCursor !== null && (
            <p>
              <a href={`${BASE_URL}/${linkTo(workspaceId, ['jobs'])}`}>All jobs</a>
            </p>
          )}
        </section>
      )}
      {isViewer && <p>You are a viewer of this workspace. Editors and owners can schedule its notebooks.</p>}
      {isFormShown ? (
        <JobForm
          client={client}
          of={{ notebookId, title }}
          saved={(job) => {
            made.value = job;
            isAdding.value = false;
            reload();
          }}
        />
      ) : (
        !isViewer && (
          <button
            type="button"
            onClick={() => {
              made.value = undefined;
              isAdding.value = true;
            }}
          >
            Another schedule
          </button>
        )
      )}
    </>
  );
}

/** What was saved, and where to find it. It takes the focus, because the form with the focus has gone. */
function Made({ job, workspaceId }: { readonly job: Job; readonly workspaceId: string }) {
  const place = useRef<HTMLParagraphElement>(null);
  useEffect(() => place.current?.focus(), []);
  const [first] = job.next;
  return (
    <p class="notice" role="status" tabIndex={-1} ref={place}>
      The job <bdi>{nameOf(job)}</bdi> is saved
      {first !== undefined && (
        <>
          , and runs next on <time dateTime={first}>{zonedText(first, job.timeZone)}</time>
        </>
      )}
      . <a href={jobLink(workspaceId, job)}>Its history</a> is in the list of jobs, next to the list of
      notebooks.
    </p>
  );
}

function jobLink(workspaceId: string, { id }: Job): string {
  return `${BASE_URL}/${linkTo(workspaceId, ['jobs', id])}`;
}
