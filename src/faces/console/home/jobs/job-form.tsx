import { useSignal } from '@preact/signals';
import { cutText } from '#src/base/text/cut-text.ts';
import type { Client } from '#src/contract/client/client.ts';
import type { Job, NewJob } from '#src/contract/wire/job.ts';
import { Problem } from '../../parts/problem.tsx';
import { choiceOf, firstChoice, type ScheduleChoice, scheduleOf } from './schedule-choice.ts';
import { ScheduleFields } from './schedule-fields.tsx';
import { OWN_TIME_ZONE } from './zoned-time.ts';

const MAX_NAME_CHARACTERS = 200;
const SECONDS_PER_MINUTE = 60;
/** The longest deadline: a day. */
const MAX_DEADLINE_MINUTES = 1440;
const MAX_RETRIES = 10;
const DEFAULT_RETRIES = 2;

interface JobFormProps {
  readonly client: Client;
  /** The job to change, or the notebook of a new job. */
  readonly of: Job | { readonly notebookId: string; readonly title: string };
  readonly saved: (job: Job) => void;
}

/** The form that creates or changes a job. */
export function JobForm({ client, of, saved }: JobFormProps) {
  const job = 'target' in of ? of : undefined;
  const timeZone = useSignal(job?.timeZone ?? OWN_TIME_ZONE);
  const choice = useSignal<ScheduleChoice>(
    job === undefined ? firstChoice(timeZone.value) : choiceOf(job.schedule, job.timeZone),
  );
  const first = useSignal(choice.value).peek();
  const error = useSignal<unknown>(undefined);
  const isBusy = useSignal(false);
  const save = async (form: HTMLFormElement) => {
    const schedule = scheduleOf(choice.value, timeZone.value);
    if (schedule === undefined || isBusy.value) return;
    isBusy.value = true;
    error.value = undefined;
    const members = { ...membersOf(form, job), timeZone: timeZone.value };
    // A schedule that stays the same is not sent, so that a job keeps its next instant, and an instant its seconds.
    const isSame = choice.value === first && timeZone.value === job?.timeZone;
    try {
      saved(
        'target' in of
          ? await client.jobs.update(of.id, {
              ...members,
              ...(isSame ? {} : { schedule }),
              expectedUpdatedAt: of.updatedAt,
            })
          : await client.jobs.create({ ...members, schedule, target: { notebookId: of.notebookId } }),
      );
    } catch (reason) {
      error.value = reason;
    }
    isBusy.value = false;
  };
  const name = 'target' in of ? (of.name ?? '') : cutText(of.title, 0, MAX_NAME_CHARACTERS);
  return (
    <form
      class="job"
      onSubmit={(event) => {
        event.preventDefault();
        void save(event.currentTarget);
      }}
    >
      <label>
        Name
        <input
          name="name"
          dir="auto"
          maxLength={MAX_NAME_CHARACTERS}
          defaultValue={name}
          autocomplete="off"
        />
      </label>
      <ScheduleFields client={client} choice={choice} timeZone={timeZone} createdAt={job?.createdAt} />
      <fieldset>
        <legend>If something goes wrong</legend>
        <label>
          Stop a run that takes longer than so many minutes
          <input
            type="number"
            name="minutes"
            min={1 / SECONDS_PER_MINUTE}
            max={MAX_DEADLINE_MINUTES}
            step="any"
            placeholder="no limit"
            defaultValue={job?.timeoutS == null ? '' : String(job.timeoutS / SECONDS_PER_MINUTE)}
          />
        </label>
        <label>
          If the server was not running at the time
          <select name="catchUp">
            <option value="last" selected={job?.catchUp !== 'none'}>
              run once, as soon as the server is back
            </option>
            <option value="none" selected={job?.catchUp === 'none'}>
              skip it, and wait for the next time
            </option>
          </select>
        </label>
        <p class="faint">
          If the run before is still in progress, the time is skipped, and the history says so. After five
          failures in a row the job pauses.
        </p>
      </fieldset>
      <details
        // A browser cannot show its message at a field that is hidden.
        onInvalidCapture={(event) => {
          event.currentTarget.open = true;
        }}
      >
        <summary>Advanced</summary>
        <label>
          Further attempts after a failure that is not the fault of the notebook, such as a lost kernel
          <input
            type="number"
            name="retries"
            required
            min={0}
            max={MAX_RETRIES}
            step={1}
            defaultValue={String(job?.retries ?? DEFAULT_RETRIES)}
          />
        </label>
        <label>
          Parameters, one on each line
          <textarea
            class="mono"
            name="arguments"
            rows={2}
            spellcheck={false}
            placeholder="--month=3"
            defaultValue={linesOf(job)}
          />
        </label>
      </details>
      {error.value !== undefined && <Problem error={error.value} />}
      <div class="buttons">
        <button type="submit" class="primary" aria-disabled={isBusy.value}>
          {job === undefined ? 'Schedule' : 'Save'}
        </button>
      </div>
    </form>
  );
}

function linesOf(job: Job | undefined): string {
  return job?.arguments.join('\n') ?? '';
}

/** Returns the members of a job from the fields of the form, apart from its schedule. */
function membersOf(form: HTMLFormElement, job: Job | undefined) {
  const fields = new FormData(form);
  const text = (name: string) =>
    String(fields.get(name) ?? '')
      .replaceAll('\r\n', '\n')
      .trim();
  const lines = text('arguments');
  const seconds = Math.round(Number(text('minutes')) * SECONDS_PER_MINUTE);
  return {
    name: text('name') || null,
    timeoutS: text('minutes') === '' ? null : Math.max(1, seconds),
    catchUp: text('catchUp') === 'none' ? 'none' : 'last',
    retries: Number(text('retries')),
    // An argument may itself have several lines. It stays whole unless somebody changes the field.
    ...(lines === linesOf(job).trim()
      ? {}
      : {
          arguments: lines
            .split('\n')
            .map((line) => line.trim())
            .filter((line) => line !== ''),
        }),
  } satisfies Partial<NewJob>;
}
