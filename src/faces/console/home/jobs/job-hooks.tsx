import { useSignal } from '@preact/signals';
import { useEffect, useId, useRef } from 'preact/hooks';
import { pause } from '#src/contract/client/abort.ts';
import type { Client } from '#src/contract/client/client.ts';
import type { CreatedHook, Delivery, Hook, HookEventType } from '#src/contract/wire/hook.ts';
import type { Job } from '#src/contract/wire/job.ts';
import { Action } from '../../parts/action.tsx';
import { Badge } from '../../parts/badge.tsx';
import { Problem } from '../../parts/problem.tsx';
import type { Tone } from '../../parts/words.ts';
import { useLoaded } from '../../state/loaded.ts';
import { comebacks } from '../../state/server.ts';
import { Dialog } from './dialog.tsx';
import type { Viewer } from './job-actions.tsx';
import { isolated } from './job-words.ts';

/** The most hooks of a workspace. */
const MAX_HOOKS = 100;
/** How long the page waits for the end of a test, and after which pause it looks again. */
const MAX_LOOKS = 60;
const LOOK_MS = 500;

/** The events in words. */
const EVENTS: Readonly<Record<HookEventType, string>> = {
  'job.failed': 'a run failed and is not tried again',
  'job.paused': 'the job was paused, by itself or by a person',
  'job.skipped': 'a time was skipped',
  'run.completed': 'a run completed',
  'run.failed': 'a run failed, also if it is tried again',
  'run.cancelled': 'a run was cancelled',
  'session.failed': 'a session failed',
};
/** The events that the form offers for a job. */
const OFFERED = ['job.failed', 'job.paused', 'job.skipped', 'run.completed'] as const;
/** The offered events that are chosen at first. */
const CHOSEN: readonly HookEventType[] = ['job.failed', 'job.paused'];

const STATES: Readonly<Record<Hook['status'], readonly [state: string, tone: Tone]>> = {
  idle: ['ready', 'good'],
  due: ['sending', 'busy'],
  sending: ['sending', 'busy'],
  'backing-off': ['tries again soon', 'warn'],
  paused: ['paused', 'warn'],
};

interface JobHooksProps {
  readonly viewer: Viewer;
  readonly job: Job;
}

/** The servers that are told of a job, and the way to add one. Hooks change seldom, so they are loaded again only after a change here. */
export function JobHooks({ viewer, job }: JobHooksProps) {
  const { client, workspace } = viewer;
  const isAdding = useSignal(false);
  const { value, error, reload } = useLoaded(
    (signal) => client.hooks.list({ limit: MAX_HOOKS, signal }),
    job.id,
    { changes: comebacks.value },
  );
  const hooks = value?.items.filter((hook) => mayTellOf(hook, job));
  return (
    <section aria-labelledby="hooks">
      <h3 id="hooks">Who is told</h3>
      {error !== undefined && <Problem error={error} retry={reload} />}
      {hooks?.length === 0 && <p class="faint">Nobody is told when this job fails or is paused.</p>}
      {hooks !== undefined && hooks.length > 0 && (
        <ul class="rows" aria-labelledby="hooks">
          {hooks.map((hook) => (
            <li key={hook.id}>
              <HookRow viewer={viewer} hook={hook} changed={reload} />
            </li>
          ))}
        </ul>
      )}
      {workspace.role === 'viewer' ? (
        <p class="faint">You are a viewer of this workspace. Editors and owners can have others told.</p>
      ) : (
        <button
          type="button"
          onClick={() => {
            isAdding.value = true;
          }}
        >
          Tell another server
        </button>
      )}
      {isAdding.value && (
        <Dialog
          title="Tell another server"
          closed={() => {
            isAdding.value = false;
          }}
        >
          {(close) => <HookForm client={client} job={job} made={reload} close={close} />}
        </Dialog>
      )}
    </section>
  );
}

/** Returns whether a hook may be told of the job: of its notebook, of it, or of all. */
function mayTellOf({ filter: { jobId, notebookId } }: Hook, { id, target }: Job): boolean {
  const isOfNotebook =
    notebookId === undefined || ('notebookId' in target && target.notebookId === notebookId);
  return isOfNotebook && (jobId === undefined || jobId === id);
}

interface HookRowProps {
  readonly viewer: Viewer;
  readonly hook: Hook;
  readonly changed: () => void;
}

function HookRow({ viewer: { client, userId, workspace }, hook, changed }: HookRowProps) {
  const { id, name, url, events, status, paused, reason, ownerId, updatedAt } = hook;
  const outcome = useSignal<string | undefined>(undefined);
  const refusalId = useId();
  const mayChange = workspace.role === 'owner' || (workspace.role === 'editor' && ownerId === userId);
  const whyNot = mayChange ? undefined : refusalId;
  const [state, tone] = STATES[status];
  return (
    <div class="job">
      <div class="job-title">
        <bdi>{name ?? url}</bdi>
        <Badge state={state} tone={tone} />
      </div>
      {name !== null && (
        <p>
          <bdi>{url}</bdi>
        </p>
      )}
      <p class="faint">
        Told of {scopeOf(hook)} when {events.map((event) => EVENTS[event] ?? event).join('; ')}.
      </p>
      {paused && (
        <p class={reason === null ? undefined : 'bad'}>
          {reason === null ? 'Paused by a person.' : <bdi>{reason.message}</bdi>} It is told of nothing until
          it is resumed.
        </p>
      )}
      <div class="actions">
        {!paused && (
          <Action
            label="Send a test"
            whyNot={whyNot}
            run={async () => {
              outcome.value = undefined;
              outcome.value = outcomeOf(await tested(client, id));
            }}
            onDone={changed}
          />
        )}
        <Action
          key={String(paused)}
          label={paused ? 'Resume' : 'Pause'}
          whyNot={whyNot}
          run={() => client.hooks.update(id, { expectedUpdatedAt: updatedAt, paused: !paused })}
          onDone={changed}
        />
        <Action
          label="Delete"
          isDanger
          whyNot={whyNot}
          confirm={`${isolated(name ?? url)} is not told any more, of this job or of others. Its log is deleted.`}
          run={() => client.hooks.delete(id)}
          onDone={changed}
        />
      </div>
      {!mayChange && (
        <p class="faint" id={refusalId}>
          {workspace.role === 'viewer'
            ? 'Viewers cannot change it.'
            : `It belongs to ${isolated(ownerId)}. Only this member and owners of the workspace can change it.`}
        </p>
      )}
      <p role="status">{outcome.value}</p>
    </div>
  );
}

/** Returns what a hook is told of: this job, its notebook, or more. */
function scopeOf({ filter: { jobId, notebookId, metadata } }: Hook): string {
  const runs = metadata === undefined ? '' : ', for runs with some metadata';
  if (jobId !== undefined) return `this job${runs}`;
  return `${notebookId === undefined ? 'the whole workspace' : 'the whole notebook'}${runs}`;
}

/** Sends a test. Resolves with its delivery after the first attempt, or as it is after half a minute. */
async function tested(client: Client, hookId: string): Promise<Delivery> {
  let delivery = await client.hooks.test(hookId);
  for (let looks = 0; looks < MAX_LOOKS; looks++) {
    const { items } = await client.hooks.deliveries(hookId, { order: 'desc', limit: MAX_HOOKS });
    delivery = items.find(({ id }) => id === delivery.id) ?? delivery;
    if (delivery.status !== 'pending' || (delivery.attempts > 0 && delivery.nextAttemptAt !== null)) break;
    await pause(LOOK_MS, undefined);
  }
  return delivery;
}

function outcomeOf({ status, responseStatus, attempts, reason }: Delivery): string {
  if (status === 'delivered') return `The test has arrived: the server answered ${responseStatus}.`;
  if (status === 'pending' && attempts === 0) return 'The test still waits, perhaps behind other events.';
  const again = status === 'dead' ? 'It is not sent again.' : 'It is sent again later.';
  return `The test has not arrived. ${reason?.message ?? 'The reason is unknown.'} ${again}`;
}

interface HookFormProps {
  readonly client: Client;
  readonly job: Job;
  readonly made: () => void;
  readonly close: () => void;
}

/** The form for a hook of one job, and then its secret. */
function HookForm({ client, job, made, close }: HookFormProps) {
  const hintId = useId();
  const error = useSignal<unknown>(undefined);
  const isBusy = useSignal(false);
  const hook = useSignal<CreatedHook | undefined>(undefined);
  const isNoneChosen = useSignal(false);
  if (hook.value !== undefined) return <Secret hook={hook.value} close={close} />;
  const save = async (form: HTMLFormElement) => {
    const fields = new FormData(form);
    const events = OFFERED.filter((event) => fields.has(event));
    isNoneChosen.value = events.length === 0;
    if (events.length === 0 || isBusy.value) return;
    isBusy.value = true;
    error.value = undefined;
    try {
      const url = String(fields.get('url') ?? '').trim();
      const name = String(fields.get('name') ?? '').trim();
      hook.value = await client.hooks.create({ url, events, filter: { jobId: job.id }, name: name || null });
      made();
    } catch (reason) {
      error.value = reason;
    }
    isBusy.value = false;
  };
  return (
    <form
      class="job"
      onSubmit={(event) => {
        event.preventDefault();
        void save(event.currentTarget);
      }}
    >
      <label>
        Address
        <input
          name="url"
          type="url"
          required
          maxLength={2000}
          autocomplete="off"
          placeholder="https://receiver.example.com/troupe"
          aria-describedby={hintId}
        />
      </label>
      <small id={hintId}>
        A program of yours that takes webhooks, such as one that posts in a chat. Members can read the
        address, so it should contain no secret.
      </small>
      <label>
        Name
        <input name="name" dir="auto" maxLength={200} autocomplete="off" />
      </label>
      <fieldset>
        <legend>Tell it when</legend>
        {OFFERED.map((event) => (
          <label key={event} class="check">
            <input type="checkbox" name={event} defaultChecked={CHOSEN.includes(event)} />
            {EVENTS[event]}
          </label>
        ))}
      </fieldset>
      {isNoneChosen.value && (
        <p class="wrong" role="alert">
          Choose at least one event.
        </p>
      )}
      {error.value !== undefined && <Problem error={error.value} />}
      <div class="buttons">
        <button type="submit" class="primary" aria-disabled={isBusy.value}>
          Tell it
        </button>
      </div>
    </form>
  );
}

/** The secret of a new hook. It takes the focus, because the form with the focus has gone. */
function Secret({ hook: { secret }, close }: { readonly hook: CreatedHook; readonly close: () => void }) {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.select(), []);
  return (
    <form
      class="job"
      onSubmit={(event) => {
        event.preventDefault();
        close();
      }}
    >
      <label>
        Secret, which is shown only now
        <input class="mono" readOnly ref={field} value={secret} />
      </label>
      <p>
        Give the secret to the receiver: it checks with it that requests come from this server, as Standard
        Webhooks says. Afterwards send a test.
      </p>
      <div class="buttons">
        <button type="submit" class="primary">
          I have the secret
        </button>
      </div>
    </form>
  );
}
