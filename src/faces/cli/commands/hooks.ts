/** `troupe hooks`: hooks that tell other servers of events, and, under `in`, hooks at which other programs fire a job. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Client } from '#src/contract/client/client.ts';
import type { Delivery, HookEventType, HookFilter, HookIn } from '#src/contract/wire/hook.ts';
import { collect } from '../collect.ts';
import type { CliContext, CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { CommandEnd, CommandFailure, EXIT } from '../exit-code.ts';
import { metadataOption } from '../metadata-option.ts';
import { followDelivery, isAttempted } from '../run/follow-delivery.ts';
import { Interruption } from '../run/interruption.ts';
import { jobNamed, notebookNamed } from '../run/named-objects.ts';
import { DELIVERY_COLUMNS, HOOK_COLUMNS, hookText } from '../show/hook.ts';
import { styleOf } from '../style.ts';
import { type ListColumn, printJson, printList } from '../terminal.ts';

/** The events, in the order of the help. The schema of the API is not loaded, so that commands start faster. */
const EVENTS = Object.keys({
  'run.completed': true,
  'run.failed': true,
  'run.cancelled': true,
  'job.failed': true,
  'job.skipped': true,
  'job.paused': true,
  'session.failed': true,
} satisfies Record<HookEventType, true>) as readonly HookEventType[];

/** How many deliveries `troupe hooks show` shows. */
const SHOWN = 5;

interface FilterOptions {
  readonly notebook?: string;
  readonly job?: string;
  readonly metadata?: Readonly<Record<string, string>>;
}

interface CreateOptions extends FilterOptions {
  readonly events: readonly HookEventType[];
  readonly name?: string;
  readonly paused?: boolean;
}

/** The options of `troupe hooks change`. An option that is false takes away what the hook had. */
interface ChangeOptions {
  readonly url?: string;
  readonly events?: readonly HookEventType[];
  readonly name?: string | false;
  readonly notebook?: string | false;
  readonly job?: string | false;
  readonly metadata?: Readonly<Record<string, string>> | false;
}

/** `troupe hooks`: hooks that tell other servers of events, and hooks that fire jobs. */
export const hookCommands: CommandGroup = (program, context) => {
  const { terminal, connect, wantsJson } = context;
  const group = program.command('hooks').description('tell other servers of events, and let them fire jobs');
  addCreation(group, context);
  addChange(group, context);

  const list = group
    .command('list')
    .description('list the hooks, oldest first')
    .action(async (_, command) => {
      printList(terminal, await collect(connect(command).hooks.each()), HOOK_COLUMNS, wantsJson(command));
    });
  examples(list, ['troupe hooks list', "troupe hooks list --json | jq -r '.[] | select(.paused) | .id'"]);

  const show = group
    .command('show')
    .description('show a hook: what it sends, why it is paused, and its last deliveries')
    .argument('<hook>', 'id of the hook')
    .action(async (hookId: string, _, command) => {
      const client = connect(command);
      const hook = await client.hooks.get(hookId);
      const { items } = await client.hooks.deliveries(hookId, { order: 'desc', limit: SHOWN });
      if (wantsJson(command)) printJson(terminal, { ...hook, deliveries: items });
      else terminal.out(hookText(hook, items, styleOf(terminal.color), terminal.color));
    });
  examples(show, ['troupe hooks show hook_01…']);

  const deliveries = group
    .command('deliveries')
    .description('list the deliveries of a hook, newest first. Their bodies and the answers are in --json')
    .argument('<hook>', 'id of the hook')
    .addOption(new Option('--limit <count>', 'how many to list').default(20).argParser(countOf))
    .action(async (hookId: string, { limit }: { limit: number }, command) => {
      const found: Delivery[] = [];
      const page = { order: 'desc', limit: Math.min(limit, 100) } as const;
      for await (const delivery of connect(command).hooks.eachDelivery(hookId, page)) {
        found.push(delivery);
        if (found.length === limit) break;
      }
      printList(terminal, found, DELIVERY_COLUMNS, wantsJson(command));
    });
  examples(deliveries, [
    'troupe hooks deliveries hook_01…',
    'troupe hooks deliveries hook_01… --limit 1000 --json | jq \'.[] | select(.status == "dead")\'',
  ]);

  addSending(group, context);

  const rotate = group
    .command('rotate')
    .description(
      'give a hook a new secret and print it; it is not shown again. The secret before signs, too, for 24 hours',
    )
    .argument('<hook>', 'id of the hook')
    .action(async (hookId: string, _, command) => {
      const hook = await connect(command).hooks.rotate(hookId);
      if (wantsJson(command)) return printJson(terminal, hook);
      terminal.out(`${hook.secret}\n`);
      const older = hook.olderSecretUntil;
      const overlap = older === null ? '' : ` The secret before signs, too, until ${older}.`;
      terminal.err(`${hook.id} has a new secret, which is not shown again.${overlap}\n`);
    });
  examples(rotate, ['troupe hooks rotate hook_01… > hook-secret']);

  const change = async (hookId: string, paused: boolean, command: Command) => {
    const client = connect(command);
    const { updatedAt: expectedUpdatedAt } = await client.hooks.get(hookId);
    const hook = await client.hooks.update(hookId, { expectedUpdatedAt, paused });
    if (wantsJson(command)) return printJson(terminal, hook);
    const waiting = hook.pending === 0 ? '' : ` Deliveries that wait: ${hook.pending}.`;
    terminal.out(`${hookId} is ${hook.paused ? 'paused' : hook.status}.${waiting}\n`);
  };
  const pausing = group
    .command('pause')
    .description('pause a hook: it sends nothing, and events during the pause are not sent later')
    .argument('<hook>', 'id of the hook')
    .action((hookId: string, _, command) => change(hookId, true, command));
  examples(pausing, ['troupe hooks pause hook_01…']);

  const resume = group
    .command('resume')
    .description('resume a hook: it sends the deliveries that had waited before the pause')
    .argument('<hook>', 'id of the hook')
    .action((hookId: string, _, command) => change(hookId, false, command));
  examples(resume, ['troupe hooks resume hook_01…']);

  const deleting = group
    .command('delete')
    .description('delete hooks with their deliveries')
    .argument('<hook...>', 'ids of the hooks')
    .action(async (ids: readonly string[], _, command) => {
      const client = connect(command);
      await deleteAll(ids, (id) => client.hooks.delete(id), command, context);
    });
  examples(deleting, ['troupe hooks delete hook_01…']);

  addHooksIn(group, context);
};

function addCreation(group: Command, context: CliContext): void {
  const { terminal, connect, wantsJson } = context;
  const create = group
    .command('create')
    .description(
      'create a hook, and print the secret with which the receiver checks requests; it is not shown again. The options --notebook, ' +
        '--job and --metadata limit what is sent; an event must match all of them.',
    )
    .argument(
      '<url>',
      'address to which the events are posted. Members can read it, so it should contain no secret',
    )
    .addOption(eventsOption().makeOptionMandatory())
    .option(...NOTEBOOK_OPTION)
    .option(...JOB_OPTION)
    .addOption(metadataOption('runs whose events are sent'))
    .option('--name <text>', 'a name for people')
    .option('--paused', 'create the hook paused')
    .action(async (url: string, options: CreateOptions, command: Command) => {
      const client = connect(command);
      const { events: wanted, name, paused } = options;
      const filter = await filterOf(client, options, context, command);
      const hook = await client.hooks.create({
        url,
        events: [...wanted],
        filter,
        ...(name === undefined ? {} : { name }),
        ...(paused === true ? { paused } : {}),
      });
      if (wantsJson(command)) return printJson(terminal, hook);
      terminal.out(`${hook.secret}\n`);
      const does = hook.paused ? 'is paused' : `sends ${hook.events.join(', ')}`;
      terminal.err(
        `${hook.id} ${does}. Its secret is not shown again. Try it: troupe hooks test ${hook.id}\n`,
      );
    });
  examples(create, [
    'troupe hooks create https://receiver.example.com/troupe --events run.failed,job.paused > hook-secret',
    "troupe hooks create https://receiver.example.com/troupe --events run.completed --notebook 'Sales of a month'",
    'troupe hooks create https://receiver.example.com/troupe --events job.failed --job job_01… --name On-call',
  ]);
}

const NOTEBOOK_OPTION = [
  '--notebook <notebook>',
  'only events of this notebook: its title, id or file',
] as const;
const JOB_OPTION = ['--job <job>', 'only events of this job and of its runs: its id or name'] as const;

function eventsOption(): Option {
  return new Option('--events <list>', `what is sent, separated by commas: ${EVENTS.join(', ')}`).argParser(
    eventsOf,
  );
}

/** Returns the filter of the options. Rejects when there is no such notebook or job, of which a hook would never learn. */
async function filterOf(
  client: Client,
  { notebook, job, metadata }: FilterOptions,
  context: CliContext,
  command: Command,
): Promise<HookFilter> {
  return {
    ...(notebook === undefined
      ? {}
      : { notebookId: await notebookNamed(client, notebook, context, command) }),
    ...(job === undefined ? {} : { jobId: (await client.jobs.get(await jobNamed(client, job))).id }),
    ...(metadata === undefined ? {} : { metadata }),
  };
}

/** `troupe hooks change`, which changes the given members of a hook. */
function addChange(group: Command, context: CliContext): void {
  const { terminal, connect, wantsJson } = context;
  const change = group
    .command('change')
    .description(
      'change the address, the events, the limits or the name of a hook; everything that is not named stays. Its secret stays, too, ' +
        'and deliveries that wait go to the new address.',
    )
    .argument('<hook>', 'id of the hook')
    .option('--url <url>', 'address to which the events are posted from now on')
    .addOption(eventsOption())
    .option(...NOTEBOOK_OPTION)
    .option('--no-notebook', 'events of all notebooks')
    .option(...JOB_OPTION)
    .option('--no-job', 'events of all jobs and of runs without a job')
    .addOption(metadataOption('runs whose events are sent, in place of the metadata before'))
    .option('--no-metadata', 'events of runs with any metadata')
    .option('--name <text>', 'a name for people')
    .option('--no-name', 'no name')
    .action(async (hookId: string, options: ChangeOptions, command: Command) => {
      if (Object.keys(options).length === 0)
        throw new CommandFailure('Name at least one option: there is nothing to change.', EXIT.usage);
      const client = connect(command);
      const { filter, updatedAt: expectedUpdatedAt } = await client.hooks.get(hookId);
      const { url, events, name } = options;
      const changed = await client.hooks.update(hookId, {
        expectedUpdatedAt,
        ...(url === undefined ? {} : { url }),
        ...(events === undefined ? {} : { events: [...events] }),
        ...(name === undefined ? {} : { name: name === false ? null : name }),
        filter: await changedFilter(client, filter, options, context, command),
      });
      if (wantsJson(command)) return printJson(terminal, changed);
      terminal.out(hookText(changed, [], styleOf(terminal.color), terminal.color));
    });
  examples(change, [
    'troupe hooks change hook_01… --url https://receiver.example.com/other',
    "troupe hooks change hook_01… --events job.failed,job.paused --job 'Sales of a day'",
    'troupe hooks change hook_01… --no-job --no-name',
  ]);
}

/** Returns the filter of a hook after the change that the options name. */
async function changedFilter(
  client: Client,
  before: HookFilter,
  { notebook, job, metadata }: ChangeOptions,
  context: CliContext,
  command: Command,
): Promise<HookFilter> {
  const { notebookId, jobId, metadata: pairs, ...rest } = before;
  return {
    ...rest,
    ...(notebook === undefined && notebookId !== undefined ? { notebookId } : {}),
    ...(job === undefined && jobId !== undefined ? { jobId } : {}),
    ...(metadata === undefined && pairs !== undefined ? { metadata: pairs } : {}),
    ...(await filterOf(
      client,
      {
        ...(typeof notebook === 'string' ? { notebook } : {}),
        ...(typeof job === 'string' ? { job } : {}),
        ...(typeof metadata === 'object' ? { metadata } : {}),
      },
      context,
      command,
    )),
  };
}

interface SendOptions {
  readonly detach?: boolean;
}

/** `troupe hooks test` and `troupe hooks replay`, which wait for the next attempt of a delivery. */
function addSending(group: Command, context: CliContext): void {
  const detach = ['--detach', 'print the id of the delivery, and return while it is sent'] as const;
  const test = group
    .command('test')
    .description(
      'send a test to the receiver of a hook, and say whether it has arrived. The exit code is 1 if it has not; then the server ' +
        'sends it again later.',
    )
    .argument('<hook>', 'id of the hook')
    .option(...detach)
    .action((hookId: string, options: SendOptions, command: Command) => {
      const { hooks } = context.connect(command);
      return send((signal) => hooks.test(hookId, { signal }), options, command, context);
    });
  examples(test, ['troupe hooks test hook_01…', 'troupe hooks test hook_01… --detach']);

  const replay = group
    .command('replay')
    .description('send a delivery again, with its id, and say whether it has arrived')
    .argument('<hook>', 'id of the hook')
    .argument('<delivery>', 'id of the delivery')
    .option(...detach)
    .action((hookId: string, deliveryId: string, options: SendOptions, command: Command) => {
      const { hooks } = context.connect(command);
      return send((signal) => hooks.replay(hookId, deliveryId, { signal }), options, command, context);
    });
  examples(replay, ['troupe hooks replay hook_01… dlv_01…']);
}

/** Queues a delivery and waits for its next attempt, unless the command is detached. Ctrl-C ends the wait, not the delivery. */
async function send(
  queue: (signal: AbortSignal) => Promise<Delivery>,
  { detach }: SendOptions,
  command: Command,
  { terminal, input, connect, wantsJson }: CliContext,
): Promise<void> {
  using interruption = new Interruption(input);
  const signal = interruption.stop;
  const json = wantsJson(command);
  const queued = await queue(signal);
  if (detach === true) {
    if (json) printJson(terminal, queued);
    else terminal.out(`${queued.id}\n`);
    return;
  }
  const delivery = await followDelivery(connect(command), queued, signal);
  if (json) printJson(terminal, delivery);
  else if (delivery.status === 'delivered') terminal.out(`${delivery.id} ${outcomeOf(delivery, queued)}\n`);
  else terminal.err(`${delivery.id} ${outcomeOf(delivery, queued)}\n`);
  if (delivery.status !== 'delivered') throw new CommandEnd(EXIT.failed);
}

function outcomeOf(delivery: Delivery, queued: Delivery): string {
  const { hookId, status, responseStatus, nextAttemptAt } = delivery;
  if (status === 'delivered') return `has arrived: the receiver answered ${responseStatus}.`;
  const reason = delivery.reason?.message ?? 'The reason is unknown.';
  if (status === 'dead') return `has not arrived, and is not sent again. ${reason}`;
  return isAttempted(delivery, queued)
    ? `has not arrived. ${reason} The next attempt is at ${nextAttemptAt}.`
    : `still waits, perhaps behind others: troupe hooks show ${hookId}`;
}

const HOOK_IN_COLUMNS: readonly ListColumn<HookIn>[] = [
  { title: 'id', of: ({ id }) => id },
  { title: 'name', of: ({ name }) => name },
  { title: 'url', of: ({ url }) => url },
  { title: 'by', of: ({ createdBy }) => createdBy },
  { title: 'created', of: ({ createdAt }) => createdAt },
];

/** `troupe hooks in`: the hooks at which other programs fire a job. */
function addHooksIn(program: Command, context: CliContext): void {
  const { terminal, connect, baseUrl, wantsJson } = context;
  const group = program.command('in').description('hooks at which other programs fire a job');
  /** Without `TROUPE_PUBLIC_URL` the server knows only the path. Other programs need the whole URL. */
  const whole = <T extends HookIn>(hook: T, command: Command): T =>
    hook.url.startsWith('/') ? { ...hook, url: `${baseUrl(command)}${hook.url}` } : hook;

  const list = group
    .command('list')
    .description('list the hooks that fire a job, oldest first')
    .argument('<job>', 'id or name of the job')
    .action(async (name: string, _, command) => {
      const client = connect(command);
      const { items } = await client.hooksIn.list(await jobNamed(client, name));
      const hooks = items.map((hook) => whole(hook, command));
      printList(terminal, hooks, HOOK_IN_COLUMNS, wantsJson(command));
    });
  examples(list, ['troupe hooks in list job_01…']);

  const create = group
    .command('create')
    .description('create a hook that fires a job, and print its secret; it is not shown again')
    .argument('<job>', 'id or name of the job')
    .option('--name <text>', 'a name for people')
    .action(async (job: string, { name }: { name?: string }, command) => {
      const client = connect(command);
      const jobId = await jobNamed(client, job);
      const hook = whole(await client.hooksIn.create(jobId, name ?? null), command);
      if (wantsJson(command)) return printJson(terminal, hook);
      terminal.out(`${hook.secret}\n`);
      terminal.err(`${hook.id} fires ${jobId}: POST ${hook.url}\nIts secret is not shown again.\n`);
    });
  examples(create, [
    'troupe hooks in create job_01… --name CI > hook-secret',
    'troupe hooks in create job_01… --json | jq -r \'"HOOK_URL=\\(.url)\\nHOOK_SECRET=\\(.secret)"\' > hook.env',
  ]);

  const deleting = group
    .command('delete')
    .description('delete hooks that fire a job: their secrets are worth nothing at once')
    .argument('<job>', 'id or name of the job')
    .argument('<hook-in...>', 'ids of the hooks')
    .action(async (name: string, ids: readonly string[], _, command) => {
      const client = connect(command);
      const jobId = await jobNamed(client, name);
      await deleteAll(ids, (id) => client.hooksIn.delete(jobId, id), command, context);
    });
  examples(deleting, ['troupe hooks in delete job_01… hin_01…']);
}

async function deleteAll(
  ids: readonly string[],
  remove: (id: string) => Promise<unknown>,
  command: Command,
  { terminal, wantsJson }: CliContext,
): Promise<void> {
  for (const id of ids) {
    await remove(id);
    if (!wantsJson(command)) terminal.out(`${id} is deleted.\n`);
  }
  if (wantsJson(command))
    printJson(
      terminal,
      ids.map((id) => ({ id, deleted: true })),
    );
}

/** Returns the events of a list separated by commas. Throws `InvalidArgumentError` for an unknown one. */
function eventsOf(text: string, before: readonly HookEventType[] = []): readonly HookEventType[] {
  const words = text.split(',').map((word) => word.trim());
  const found = words.map((word) => {
    const event = EVENTS.find((known) => known === word);
    if (event === undefined) throw new InvalidArgumentError(`The events are: ${EVENTS.join(', ')}.`);
    return event;
  });
  return [...new Set([...before, ...found])];
}

function countOf(text: string): number {
  if (/^[1-9]\d{0,3}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number of at least 1.');
}
