import { ApiError } from '#src/contract/client/api-error.ts';
import type { Client } from '#src/contract/client/client.ts';
import type {
  ConnectionTest,
  Datasource,
  DatasourceConnection,
  DatasourceGrant,
} from '#src/contract/wire/datasource.ts';
import { askLine } from '../ask.ts';
import { collect } from '../collect.ts';
import type { CliContext, CommandGroup } from '../command-group.ts';
import { isConnectionUrl, UrlConnection } from '../connection-url.ts';
import { examples } from '../examples.ts';
import { CommandEnd, CommandFailure, EXIT } from '../exit-code.ts';
import { readJsonInput } from '../json-input.ts';
import { type ListColumn, printJson, printList } from '../terminal.ts';

const COLUMNS: readonly ListColumn<Datasource>[] = [
  { title: 'slug', of: ({ slug }) => slug },
  { title: 'kind', of: ({ kind }) => kind },
  { title: 'name', of: ({ name }) => name },
  { title: 'revision', of: ({ revision }) => String(revision) },
];

const GRANT_COLUMNS: readonly ListColumn<DatasourceGrant>[] = [
  { title: 'subject', of: ({ subject }) => subject },
  { title: 'granted by', of: ({ createdBy }) => createdBy },
  { title: 'since', of: ({ createdAt }) => createdAt },
];

/** Secrets are read from a file, from standard input or from the terminal: other users can read the arguments of a process. */
const CONNECTION = 'file with the connection as JSON (- reads standard input), or a URL without its password';

/** `troupe datasources`: database connections. */
export const datasourceCommands: CommandGroup = (program, context) => {
  const { terminal, connect, wantsJson } = context;
  const group = program
    .command('datasources')
    .description('database connections; the server seals their credentials');
  const connectionFrom = async (file: string, client: Client): Promise<DatasourceConnection> => {
    if (isConnectionUrl(file))
      return complete(new UrlConnection(file, await client.datasources.schema()), context);
    const value = await readJsonInput(file, context);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value };
    throw new CommandFailure('The connection must be a JSON object with a member "kind".', EXIT.usage);
  };
  const tell = (command: Parameters<typeof wantsJson>[0], value: object, text: string) => {
    if (wantsJson(command)) printJson(terminal, value);
    else terminal.out(`${text}\n`);
  };
  const warn = ({ warnings = [] }: Pick<ConnectionTest, 'warnings'>) => {
    for (const { message } of warnings) terminal.err(`warning: ${message}\n`);
  };
  const readFields = async (file: string, client: Client, { test }: { test?: boolean }) => ({
    connection: await connectionFrom(file, client),
    testConnection: test === true,
  });
  const tellSaved = (command: Parameters<typeof wantsJson>[0], made: Datasource) => {
    tell(command, made, `${made.slug} is saved (revision ${made.revision}).`);
    warn(made);
  };
  const report = (command: Parameters<typeof wantsJson>[0], test: ConnectionTest) => {
    tell(command, test, `${test.message} (${test.elapsedMs} ms)`);
    warn(test);
    if (!test.ok) throw new CommandEnd(EXIT.failed);
  };

  const list = group
    .command('list')
    .description('list the datasources that you may read')
    .action(async (_, command) => {
      printList(terminal, await collect(connect(command).datasources.each()), COLUMNS, wantsJson(command));
    });
  examples(list, ['troupe datasources list']);
  const show = group
    .command('show')
    .description(
      'show a datasource and, to editors and owners, its grants; the connection itself is never shown',
    )
    .argument('<slug>', 'slug of the datasource')
    .action(async (slug: string, _, command) => {
      const { datasources } = connect(command);
      const [datasource, grants] = await Promise.all([
        datasources.get(slug),
        datasources.grants(slug).catch(undefinedWhenForbidden),
      ]);
      if (wantsJson(command)) return printJson(terminal, { ...datasource, grants: grants?.items ?? null });
      printList(terminal, [datasource], COLUMNS, false);
      if (grants === undefined) terminal.err('With whom it is shared is shown to editors and owners.\n');
      else if (grants.items.length > 0) printList(terminal, [...grants.items], GRANT_COLUMNS, false);
    });
  examples(show, ['troupe datasources show sales']);
  const create = group
    .command('create')
    .description('create a datasource; its connection is stored sealed')
    .argument('<slug>', 'slug of the datasource')
    .argument('<connection>', CONNECTION)
    .option('--name <name>', 'name to display')
    .option('--test', 'save it only if the connection works')
    .action(async (slug: string, file: string, options: { name?: string; test?: boolean }, command) => {
      const { name } = options;
      const client = connect(command);
      const fields = await readFields(file, client, options);
      const named = name === undefined ? fields : { ...fields, name };
      tellSaved(command, await client.datasources.create({ slug, ...named }));
    });
  examples(create, [
    'troupe datasources create sales postgres://ada@db.example.com/sales --test',
    'pass show sales-password | troupe datasources create sales mysql://ada@db.example.com/sales',
    'troupe datasources create sales connection.json --test',
    'pass show sales | troupe datasources create sales -',
  ]);
  const replace = group
    .command('replace')
    .description('replace the connection of a datasource')
    .argument('<slug>', 'slug of the datasource')
    .argument('<connection>', CONNECTION)
    .option('--name <name>', 'name to display; an empty one removes the name')
    .option('--test', 'save it only if the connection works')
    .action(async (slug: string, file: string, options: { name?: string; test?: boolean }, command) => {
      const { name } = options;
      const client = connect(command);
      const fields = await readFields(file, client, options);
      const named = name === undefined ? fields : { ...fields, name: name === '' ? null : name };
      tellSaved(command, await client.datasources.replace(slug, named));
    });
  examples(replace, ['troupe datasources replace sales connection.json']);
  const test = group
    .command('test')
    .description('test a saved connection, or an unsaved one with --connection')
    .argument('[slug]', 'slug of a saved datasource')
    .option('--connection <file>', CONNECTION)
    .action(async (slug: string | undefined, { connection }: { connection?: string }, command) => {
      const client = connect(command);
      if ((slug === undefined) === (connection === undefined)) {
        throw new CommandFailure('Name a datasource or use --connection, but not both.', EXIT.usage);
      }
      if (connection !== undefined) {
        report(command, await client.datasources.testConnection(await connectionFrom(connection, client)));
      } else if (slug !== undefined) report(command, await client.datasources.test(slug));
    });
  examples(test, ['troupe datasources test sales', 'troupe datasources test --connection connection.json']);
  const remove = group
    .command('delete')
    .description('delete a datasource and its grants; files stay')
    .argument('<slug>', 'slug of the datasource')
    .action(async (slug: string, _, command) => {
      await connect(command).datasources.delete(slug);
      tell(command, { slug, deleted: true }, `${slug} is deleted.`);
    });
  examples(remove, ['troupe datasources delete sales']);
  const share = group
    .command('share')
    .description('share a datasource with a user (user:<id>) or with a role (role:editor, role:viewer)')
    .argument('<slug>', 'slug of the datasource')
    .argument('<subject>', 'user:<id>, role:editor or role:viewer')
    .option('--revoke', 'stop sharing it')
    .action(async (slug: string, subject: string, { revoke }: { revoke?: boolean }, command) => {
      const client = connect(command);
      if (revoke === true) await client.datasources.revoke(slug, subject);
      else await client.datasources.grant(slug, subject);
      const done = revoke === true ? 'no longer shared' : 'shared';
      tell(command, { slug, subject, shared: revoke !== true }, `${slug} is ${done} with ${subject}.`);
    });
  examples(share, [
    'troupe datasources share sales role:viewer',
    'troupe datasources share sales user:ada --revoke',
  ]);
  const schema = group
    .command('schema')
    .description('print the JSON Schema of all kinds of connections')
    .action(async (_, command) => printJson(terminal, await connect(command).datasources.schema()));
  examples(schema, ['troupe datasources schema']);
};

/**
 * Asks for the members that a URL lacks, and returns the connection. Without a terminal, the secret is read from standard input
 * and other members get their usual values. Throws `CommandFailure` with the names of members that are still missing.
 */
async function complete(
  draft: UrlConnection,
  { terminal, input }: Pick<CliContext, 'terminal' | 'input'>,
): Promise<DatasourceConnection> {
  const { onKey } = input;
  const missing = draft.missing;
  const unknown = missing.filter(({ isSecret, usual }) => !isSecret && usual === undefined);
  if (onKey === undefined && unknown.length > 0)
    throw new CommandFailure(`The URL lacks: ${unknown.map(({ member }) => member).join(', ')}.`, EXIT.usage);
  for (const { member, title, isSecret, usual } of missing) {
    // Nobody is asked for the port when the database has a usual one.
    const answer =
      member === 'port' && usual !== undefined
        ? usual
        : onKey !== undefined
          ? await askLine(terminal, onKey, { label: title, isHidden: isSecret, suggested: usual })
          : isSecret
            ? (await input.read()).replace(/\r?\n$/, '')
            : usual!;
    draft.set(member, answer);
  }
  return draft.connection();
}

/** Returns undefined for a refusal because of the caller's role. Throws every other error. */
function undefinedWhenForbidden(error: unknown): undefined {
  if (error instanceof ApiError && error.code === 'role_too_low') return undefined;
  throw error;
}
