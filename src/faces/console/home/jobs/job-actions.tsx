import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';
import type { Client } from '#src/contract/client/client.ts';
import type { OwnWorkspace } from '#src/contract/wire/identity.ts';
import type { Job } from '#src/contract/wire/job.ts';
import { Action } from '../../parts/action.tsx';
import { isActive, isolated, nameOf } from './job-words.ts';

/** The person who looks at jobs. */
export interface Viewer {
  readonly client: Client;
  readonly userId: string;
  readonly workspace: OwnWorkspace;
}

/** Returns why the person may not change the job, as a sentence; undefined when the person may. */
function refusalOf({ userId, workspace }: Viewer, { ownerId }: Job): string | undefined {
  if (workspace.role === 'viewer') return 'You are a viewer of this workspace. Viewers cannot change jobs.';
  if (workspace.role === 'owner' || userId === ownerId) return undefined;
  return `The job belongs to ${isolated(ownerId)}. Only this member and owners of the workspace can change it.`;
}

interface JobActionsProps {
  readonly viewer: Viewer;
  readonly job: Job;
  /** Called after a change. */
  readonly changed: () => void;
  readonly deleted: () => void;
  readonly edit: () => void;
}

/** The actions on one job. A person without the right sees them, and the sentence that says why not. */
export function JobActions({ viewer, job, changed, deleted, edit }: JobActionsProps) {
  const { client, userId, workspace } = viewer;
  const id = useId();
  const refusal = refusalOf(viewer, job);
  const whyNot = refusal === undefined ? undefined : `${id}-refusal`;
  const busy = isActive(job) ? `${id}-busy` : undefined;
  return (
    <>
      <div class="actions">
        <Action
          label="Run now"
          whyNot={whyNot ?? busy}
          run={() => client.jobs.run(job.id)}
          onDone={changed}
        />
        <PauseOrResume viewer={viewer} job={job} changed={changed} whyNot={whyNot} />
        <Plain label="Edit" whyNot={whyNot} press={edit} />
        {workspace.role === 'owner' && userId !== job.ownerId && (
          <Action
            label="Take over"
            confirm={`The job then works with your rights in place of those of ${isolated(job.ownerId)}. Its code, and everybody who may change the notebook, can use the data that you may use.`}
            run={() => client.jobs.update(job.id, { expectedUpdatedAt: job.updatedAt, takeOver: true })}
            onDone={changed}
          />
        )}
        <Action
          label="Delete"
          isDanger
          whyNot={whyNot ?? busy}
          confirm={`${isolated(nameOf(job))} is deleted with its history. Its runs stay.`}
          run={() => client.jobs.delete(job.id)}
          onDone={deleted}
        />
      </div>
      {refusal !== undefined && <Why id={`${id}-refusal`}>{refusal}</Why>}
      {refusal === undefined && busy !== undefined && (
        <Why id={busy}>A run of this job is in progress: it can be run again or deleted afterwards.</Why>
      )}
    </>
  );
}

function Why({ id, children }: { readonly id: string; readonly children: ComponentChildren }) {
  return (
    <p class="faint" id={id}>
      {children}
    </p>
  );
}

interface PlainProps {
  readonly label: string;
  readonly whyNot: string | undefined;
  readonly press: () => void;
}

/** A button that opens something in the page. */
function Plain({ label, whyNot, press }: PlainProps) {
  return (
    <button
      type="button"
      aria-disabled={whyNot !== undefined}
      aria-describedby={whyNot}
      onClick={() => {
        if (whyNot === undefined) press();
      }}
    >
      {label}
    </button>
  );
}

type PauseOrResumeProps = Pick<JobActionsProps, 'viewer' | 'job' | 'changed'> & {
  readonly whyNot: string | undefined;
};

function PauseOrResume({ viewer: { client }, job, changed, whyNot }: PauseOrResumeProps) {
  const { id, updatedAt, paused } = job;
  return (
    <Action
      key={String(paused)}
      label={paused ? 'Resume' : 'Pause'}
      whyNot={whyNot}
      run={() => client.jobs.update(id, { expectedUpdatedAt: updatedAt, paused: !paused })}
      onDone={changed}
    />
  );
}

/** Why a job is paused, and in the list the button that resumes it for a person who may. */
export function PausedJob({ viewer, job, changed }: Pick<JobActionsProps, 'viewer' | 'job' | 'changed'>) {
  if (!job.paused) return null;
  return (
    <div class="paused">
      <PauseReason job={job} />
      {refusalOf(viewer, job) === undefined && (
        <PauseOrResume viewer={viewer} job={job} changed={changed} whyNot={undefined} />
      )}
    </div>
  );
}

/** Why a job is paused, in words. */
export function PauseReason({ job: { reason } }: { readonly job: Job }) {
  return reason === null ? (
    <p>Paused by a person.</p>
  ) : (
    <p class="bad">
      Paused: <bdi>{reason.message}</bdi> {ADVICE[reason.code] ?? 'Resume the job once the cause is removed.'}
    </p>
  );
}

const TAKE_OVER = 'An owner of the workspace can take the job over.';
/** What helps a job that has paused itself, by the code of the reason. */
const ADVICE: Readonly<Record<string, string>> = {
  owner_left: TAKE_OVER,
  role_too_low: TAKE_OVER,
  notebook_deleted: 'The job cannot run any more: delete it.',
  conversation_deleted: 'The job cannot run any more: delete it.',
};
