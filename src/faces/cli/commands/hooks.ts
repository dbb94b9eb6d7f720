/** `troupe hooks`: hooks that tell other servers of events, and, under `in`, hooks at which other programs fire a job. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Delivery, HookEventType, HookFilter, HookIn } from '#src/contract/wire/hook.ts';
import { collect } from '../collect.ts';
import type { CliContext, CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { CommandEnd, EXIT } from '../exit-code.ts';
import { metadataOption } from '../metadata-option.ts';
import { followDelivery, isAttempted } from '../run/follow-delivery.ts';
import { Interruption } from '../run/interruption.ts';
import { notebookNamed } from '../run/named-notebook.ts';
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

interface CreateOptions {
  readonly events: readonly HookEventType[];
  readonly name?: string;
  readonly notebook?: string;
  readonly job?: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly paused?: boolean;
}

/** `troupe hooks`: hooks that tell other servers of events, and hooks that fire jobs. */
export const hookCommands: CommandGroup = (program, context) => {
  const { terminal, connect, wantsJson } = context;
  const group = program.command('hooks').description('tell other servers of events, and let them fire jobs');
  addCreation(group, context);

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
  const events = new Option(
    '--events <list>',
    `what is sent, separated by commas: ${EVENTS.join(', ')}`,
  ).argParser(eventsOf);
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
    .addOption(events.makeOptionMandatory())
    .option('--notebook <notebook>', 'only events of this notebook: its title, id or file')
    .option('--job <job>', 'only events of this job and of its runs')
    .addOption(metadataOption('runs whose events are sent'))
    .option('--name <text>', 'a name for people')
    .option('--paused', 'create the hook paused')
    .action(async (url: string, options: CreateOptions, command: Command) => {
      const client = connect(command);
      const { events: wanted, notebook, job, metadata, name, paused } = options;
      const filter: HookFilter = {
        ...(notebook === undefined
          ? {}
          : { notebookId: await notebookNamed(client, notebook, context, command) }),
        ...(job === undefined ? {} : { jobId: job }),
        ...(metadata === undefined ? {} : { metadata }),
      };
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
    .argument('<job>', 'id of the job')
    .action(async (jobId: string, _, command) => {
      const { items } = await connect(command).hooksIn.list(jobId);
      const hooks = items.map((hook) => whole(hook, command));
      printList(terminal, hooks, HOOK_IN_COLUMNS, wantsJson(command));
    });
  examples(list, ['troupe hooks in list job_01…']);

  const create = group
    .command('create')
    .description('create a hook that fires a job, and print its secret; it is not shown again')
    .argument('<job>', 'id of the job')
    .option('--name <text>', 'a name for people')
    .action(async (jobId: string, { name }: { name?: string }, command) => {
      const hook = whole(await connect(command).hooksIn.create(jobId, name ?? null), command);
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
    .argument('<job>', 'id of the job')
    .argument('<hook-in...>', 'ids of the hooks')
    .action(async (jobId: string, ids: readonly string[], _, command) => {
      const client = connect(command);
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
