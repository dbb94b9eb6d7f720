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

/** The texts of choices, by their values in the API. */
type Texts<Value extends string> = Readonly<Record<Value, string>>;

const CATCH_UP: Texts<Job['catchUp']> = {
  last: 'run once, as soon as the server is back',
  none: 'skip it, and wait for the next time',
  all: 'run for each missed time, at most a hundred',
};
const OVERLAP: Texts<Job['overlap']> = {
  skip: 'skip the time',
  queue: 'wait, and run right afterwards',
  cancel: 'cancel that run, and run at once',
};
const RETRY_ON: Texts<Job['retryOn']> = {
  server: 'those that are not the fault of the notebook',
  all: 'all, also errors in cells',
};

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
      {hasOwnSession(job) && (
        <label class="check">
          <input type="checkbox" name="report" defaultChecked={job?.outputs.includes('html') === true} />
          Keep each run as a page that can be sent
        </label>
      )}
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
        <Choice
          name="catchUp"
          label="If the server was not running at the time"
          options={CATCH_UP}
          value={job?.catchUp ?? 'last'}
        />
        <Choice
          name="overlap"
          label="If the run before is still in progress"
          options={OVERLAP}
          value={job?.overlap ?? 'skip'}
        />
        <p class="faint">
          The history has each time that was skipped. After five failures in a row the job pauses.
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
          Further attempts after a failure
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
        <Choice
          name="retryOn"
          label="Failures with further attempts"
          options={RETRY_ON}
          value={job?.retryOn ?? 'server'}
        />
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

interface ChoiceProps<Value extends string> {
  readonly name: string;
  readonly label: string;
  readonly options: Texts<Value>;
  readonly value: Value;
}

function Choice<Value extends string>({ name, label, options, value }: ChoiceProps<Value>) {
  return (
    <label>
      {label}
      <select name={name}>
        {Object.entries<string>(options).map(([one, text]) => (
          <option key={one} value={one} selected={one === value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Returns whether the runs of the job, or of a new job, are on a session of their own. Only these can be kept as pages. */
function hasOwnSession(job: Job | undefined): boolean {
  return job === undefined || ('notebookId' in job.target && !('session' in job.target));
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
    catchUp: oneOf(CATCH_UP, text('catchUp'), 'last'),
    overlap: oneOf(OVERLAP, text('overlap'), 'skip'),
    retryOn: oneOf(RETRY_ON, text('retryOn'), 'server'),
    retries: Number(text('retries')),
    ...(hasOwnSession(job) ? { outputs: fields.has('report') ? (['html'] as const) : [] } : {}),
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

/** Returns the value of a field if it is one of the choices. */
function oneOf<Value extends string>(texts: Texts<Value>, value: string, otherwise: Value): Value {
  return Object.hasOwn(texts, value) ? (value as Value) : otherwise;
}
