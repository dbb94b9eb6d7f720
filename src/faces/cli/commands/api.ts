/** `troupe api`: any operation of the API by its id. Arguments, help and completion are made from the table of operations. */
import { type Command, type Help, InvalidArgumentError, Option } from 'commander';
import type { TSchema } from 'typebox';
import { ApiError } from '#src/contract/client/api-error.ts';
import type { Client } from '#src/contract/client/client.ts';
import type { OutgoingRequest } from '#src/contract/client/connection.ts';
import type { OperationSpec } from '#src/contract/wire/operations/operation.ts';
import { addressOf, filledPath, type OperationId, PATHS } from '#src/contract/wire/paths.ts';
import type { CliContext, CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';
import { parsedJson } from '../json-input.ts';
import { readBytes } from '../run/notebook-file.ts';
import { printJson, printJsonLine } from '../terminal.ts';

/** The operations for programs: neither pages nor MCP. */
const IDS = (Object.keys(PATHS) as OperationId[]).filter((id) =>
  /^\/(api\/|healthz|readyz|metrics)/.test(addressOf(id).path),
);

/** Headers that HTTP clients and proxies set, or that have an option of their own. */
const UNASKED: ReadonlySet<string> = new Set(['host', 'x-forwarded-proto', 'last-event-id']);

/** Names of options that the program itself has. A parameter with such a name gets the suffix `-parameter`. */
const TAKEN: ReadonlySet<string> = new Set(['version', 'json', 'workspace', 'help', 'body', 'content']);

/** A parameter of an operation, with the option that sets it. */
interface Parameter {
  readonly in: 'path' | 'query' | 'header';
  readonly name: string;
  readonly option: Option;
}

/** The values of the given options, by the names that commander has for the options. */
type Given = Readonly<Record<string, string | undefined>>;

/** `troupe api`: any operation of the API. */
export const api: CommandGroup = (program, context) => {
  const group = program
    .command('api')
    .description('send a request of any operation of the API, and print the answer');
  for (const id of IDS) {
    const { method, path } = addressOf(id);
    group
      .command(id)
      .description(`${method} ${path.replace(/:(\w+)\*?/g, '{$1}')}`)
      .action(async (given: Given, command: Command) => call(id, given, command, context));
  }
  // The schemas are loaded for this group alone: other commands start faster without them.
  group.hook('preSubcommand', async (_, command) => describe(command));
  examples(group, [
    'troupe api --help',
    'troupe api listRuns --status failed --limit 5',
    'troupe api createWorkspace --body \'{"name": "Research"}\'',
    'troupe api updateNotebook --notebook-id nb_01… --body - < change.json',
  ]);
};

/** Adds the options and the help of all operations, for `troupe help` and for completion. */
export async function describeOperations(program: Command): Promise<void> {
  const group = program.commands.find((command) => command.name() === 'api');
  for (const command of group?.commands ?? []) await describe(command);
}

const HELP_COLUMNS = 80;

const described = new WeakSet<Command>();

/** Adds the options and the help of one operation. */
async function describe(command: Command): Promise<void> {
  if (described.has(command)) return;
  described.add(command);
  const id = command.name() as OperationId;
  const spec = await specOf(id);
  const parameters = parametersOf(id, spec);
  for (const { option } of parameters) command.addOption(option);
  const example = [`troupe api ${id}`];
  for (const { name, option } of parameters)
    if (option.mandatory) example.push(`${option.long} ${kebab(name).replaceAll('-', '_').toUpperCase()}`);
  if (takesBody(spec)) {
    command.option('--body <json>', 'body of the request as JSON; - reads it from standard input');
    const [body] = spec.body.examples ?? [];
    example.push(`--body '${JSON.stringify(body ?? {}).replaceAll("'", "'\\''")}'`);
    command.addHelpText('after', `\nBody:\n${bodyText(spec.body, command.createHelp())}`);
  }
  if (spec.takesBytes === true) {
    command.requiredOption('--content <file>', 'file with the content');
    example.push('--content FILE');
  }
  const answers = Object.entries(spec.responses).map(
    ([status, { description }]) => `  ${status}  ${description}`,
  );
  command.addHelpText('after', `\nAnswers:\n${answers.join('\n')}`);
  examples(command, [example.join(' ')]);
}

/** Sends the request of an operation and prints its answer: JSON, a line for each event of a stream, or a file as it is. */
async function call(id: OperationId, given: Given, command: Command, context: CliContext): Promise<void> {
  const { terminal, wantsJson } = context;
  const spec = await specOf(id);
  const { path, query, headers } = partsOf(id, spec, given);
  const request: OutgoingRequest = {
    method: addressOf(id).method,
    path,
    query,
    headers,
    ...(await bodyOf(id, spec, given, context)),
  };
  const send = async (client: Client) => {
    const kind = answerKind(spec);
    if (kind === 'events') {
      const { lastEventId } = given;
      for await (const event of client.followEvents(path, { query, lastEventId }))
        printJsonLine(terminal, event);
    } else if (kind === 'bytes') {
      const { body } = await client.open(request);
      if (body !== null) await terminal.content(body);
    } else {
      const answer = await client.send(request);
      if (answer !== undefined || wantsJson(command)) printJson(terminal, answer ?? null);
    }
  };
  try {
    await send(context.connect(command, { needsWorkspace: false }));
  } catch (error) {
    // Most operations need a workspace. `connect` throws the failure that says how to choose one.
    if (error instanceof ApiError && error.code === 'missing_workspace') context.connect(command);
    throw error;
  }
}

function answerKind({ responses }: OperationSpec): 'json' | 'events' | 'bytes' {
  const { schema, contentType } = responses[200] ?? {};
  if (contentType === 'text/event-stream') return 'events';
  return contentType === undefined || schema !== undefined ? 'json' : 'bytes';
}

/** Returns the path with its parameters, the query and the headers that the options give. */
function partsOf(id: OperationId, spec: OperationSpec, given: Given) {
  const values = { path: new Map(), query: new Map(), header: new Map<string, string>() };
  for (const { in: place, name, option } of parametersOf(id, spec)) {
    const value = given[option.attributeName()];
    if (value !== undefined) values[place].set(name, value);
  }
  return {
    path: filledPath(addressOf(id).path, Object.fromEntries(values.path)),
    query: Object.fromEntries(values.query),
    headers: Object.fromEntries(values.header),
  };
}

async function bodyOf(
  id: OperationId,
  spec: OperationSpec,
  { body, content = '' }: Given,
  { input, cwd }: CliContext,
): Promise<Pick<OutgoingRequest, 'body' | 'content' | 'headers'>> {
  if (spec.takesBytes === true) {
    const headers = { 'content-type': 'application/octet-stream' };
    return { content: new Uint8Array(readBytes(content, cwd)), headers };
  }
  if (!takesBody(spec)) return {};
  if (body !== undefined)
    return body === '-'
      ? { body: parsedJson(await input.read(), 'Standard input') }
      : { body: parsedJson(body, 'The value of --body') };
  if (spec.optionalBody === true) return {};
  throw new CommandFailure(
    `${id} needs a body: --body with its JSON, or --body - for standard input. See: troupe help api ${id}`,
    EXIT.usage,
  );
}

/** Returns whether the operation takes JSON that has members. */
function takesBody(spec: OperationSpec): spec is OperationSpec & { readonly body: TSchema & Described } {
  const { body } = spec as { readonly body?: Described };
  return body !== undefined && (body.properties === undefined || Object.keys(body.properties).length > 0);
}

function parametersOf(id: OperationId, spec: OperationSpec): Parameter[] {
  const { method, path } = addressOf(id);
  const found: Parameter[] = [];
  for (const [, name = '', isRest] of path.matchAll(/:(\w+)(\*?)/g)) {
    const words = kebab(name).replaceAll('-', ' ');
    const option = optionFor(name, isRest === '' ? `${words} in the path` : 'path, which may have slashes');
    found.push({ in: 'path', name, option: option.makeOptionMandatory().argParser(partOfPath) });
  }
  for (const [name, schema] of Object.entries((spec.query?.properties ?? {}) as Record<string, Described>)) {
    if (name === 'ticket') continue; // only browsers need one: commands send the token itself
    const option = optionFor(name, schema.description ?? '');
    if (schema.enum !== undefined) option.choices(schema.enum);
    if (schema.type === 'boolean') option.choices(['true', 'false']);
    if (schema.type === 'integer') option.argParser(wholeNumber);
    const isRequired = spec.query?.required?.includes(name) === true && !('default' in schema);
    found.push({ in: 'query', name, option: option.makeOptionMandatory(isRequired) });
  }
  for (const [name, description] of Object.entries(spec.headers ?? {})) {
    if (UNASKED.has(name)) continue;
    const isRequired = spec.requiredHeaders?.includes(name) === true;
    found.push({
      in: 'header',
      name,
      option: optionFor(name, description).makeOptionMandatory(isRequired),
    });
  }
  if (method === 'POST' && !found.some(({ name }) => name === 'idempotency-key')) {
    const description =
      'a repeated request with the same key takes effect once, and gets the first answer again';
    found.push({ in: 'header', name: 'idempotency-key', option: optionFor('idempotency-key', description) });
  }
  return found;
}

function optionFor(name: string, description: string): Option {
  const flag = kebab(name);
  return new Option(`--${TAKEN.has(flag) ? `${flag}-parameter` : flag} <value>`, description);
}

/** Returns `notebook-id` for `notebookId`. */
function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** Refuses an empty part of a path, because the shorter path belongs to another operation. */
function partOfPath(value: string): string {
  if (value === '') throw new InvalidArgumentError('It must not be empty.');
  return value;
}

function wholeNumber(value: string): string {
  if (!/^\d+$/.test(value)) throw new InvalidArgumentError('It must be a whole number.');
  return value;
}

/** The parts of a schema that the help shows. */
interface Described {
  readonly $id?: string;
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly const?: unknown;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Described>>;
  readonly required?: readonly string[];
  readonly anyOf?: readonly Described[];
  readonly examples?: readonly unknown[];
}

/** Returns an entry for each member of a body. For a union, returns the entries of each variant. */
function bodyText(schema: Described, help: Help): string {
  const variants = schema.anyOf?.filter(({ properties }) => properties !== undefined) ?? [];
  if (schema.properties === undefined && variants.length > 0)
    return variants
      .map((variant) => `${variant.$id ?? 'An object'}, or:\n${bodyText(variant, help)}`)
      .join('\n')
      .replace(/, or:(?=[^:]*$)/, ':');
  const members = Object.entries(schema.properties ?? {});
  const titleOf = (name: string) => (schema.required?.includes(name) === true ? `${name} (required)` : name);
  const width = Math.max(0, ...members.map(([name]) => titleOf(name).length));
  help.helpWidth ??= HELP_COLUMNS;
  return members
    .map(([name, member]) => help.formatItem(titleOf(name), width, memberText(member), help))
    .join('\n');
}

function memberText({ description, type, enum: words, const: value, $id }: Described): string {
  const kind = words?.join(', ') ?? (value === undefined ? (type ?? $id ?? '') : JSON.stringify(value));
  return [kind === '' ? '' : `${kind}.`, description ?? ''].filter((part) => part !== '').join(' ');
}

async function specOf(id: OperationId): Promise<OperationSpec> {
  const { OPERATIONS } = await import('#src/contract/wire/operations/table.ts');
  return OPERATIONS[id];
}
