/**
 * Two ways to run the statements of a fuzz: on confined engines directly, and on a server through a
 * notebook.
 */
import { embeddedLink } from '#src/datasource/embedded/embedded-link.ts';
import type { StartEngine } from '#src/datasource/embedded/engine-port.ts';
import { Engines } from '#src/datasource/embedded/engines.ts';
import { DatasourceFailure } from '#src/datasource/failure.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import type { TestServer } from '#test/support/server-fixture.ts';
import { type AskStatement, databaseAt, type FuzzedDatabase, SLOTS } from './engine-fuzz.ts';

/** After this time a statement is cancelled. */
const PATIENCE_MS = 2000;
const MAX_ROWS = 1000;

/** Runs statements on engines that are confined as on any server, without the server. */
export function askEngines(
  folder: string,
  startEngine: StartEngine,
): Disposable & { readonly ask: AskStatement } {
  const engines = new Engines(startEngine);
  return {
    async ask({ kind, path }, sql, readOnly) {
      const session = embeddedLink({ kind, filesDirectory: folder, path }, engines);
      let text = '';
      try {
        const limits = { signal: AbortSignal.timeout(PATIENCE_MS), readOnly, maxRows: MAX_ROWS };
        for await (const { rows } of session.query(sql, [], limits)) text += String(rows.flat());
        return { kind: 'rows', text };
      } catch (error) {
        return { kind: categoryOf(error), text: String(error) };
      }
    },
    [Symbol.dispose]: () => engines[Symbol.dispose](),
  };
}

/** Returns the category of a failure that a statement may cause. Throws every other error. */
function categoryOf(error: unknown): string {
  if (error instanceof DatasourceFailure) return error.category;
  const hasEnded = error instanceof Error && error.message === 'The engine has ended.';
  if (hasEnded || error instanceof DOMException) return 'ended';
  throw error;
}

/** Code that runs a statement in the kernel, and interrupts it there when it takes too long. */
const ASKING = `
import builtins, signal
from troupe import datasource
def ask(slug, sql):
    def give_up(*_): raise KeyboardInterrupt
    signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, ${PATIENCE_MS / 1000})
    try:
        cursor = datasource(slug).execute(sql)
        print("rows", cursor.fetchmany(${MAX_ROWS}) if cursor.description else "none")
    except KeyboardInterrupt:
        print("ended", "it took too long")
    except Exception as error:
        print(type(error).__name__, str(error)[:10_000])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
builtins.ask = ask
`;

/**
 * Runs statements on a server through a notebook of the workspace, where nothing is read-only.
 * Rejects when the server or the kernel of that notebook no longer answers.
 */
export async function askThroughNotebook(server: TestServer): Promise<AskStatement> {
  const { client } = server;
  const kinds: readonly FuzzedDatabase['kind'][] = ['sqlite', 'duckdb', 'files'];
  const slugOf = ({ path }: FuzzedDatabase) => path;
  const databases = kinds.flatMap((kind) =>
    Array.from({ length: SLOTS }, (_, number) => databaseAt(kind, number)),
  );
  for (const database of databases) {
    const { kind, path } = database;
    await client.datasources.create({ slug: slugOf(database), connection: { kind, path } });
  }
  const notebook = await openNotebook(server, {}, { datasourceSlugs: databases.map(slugOf) });
  const run = async (code: string) => {
    const { success, stdout, errors } = await client.code.execute(notebook.id, code);
    if (!success) throw new Error(`The kernel could not run the statement: ${JSON.stringify(errors)}`);
    return stdout;
  };
  await run(ASKING);
  return async (database, sql) => {
    const said = await run(`ask(${JSON.stringify(slugOf(database))}, ${JSON.stringify(sql)})`);
    const space = said.indexOf(' ');
    return { kind: said.slice(0, space), text: said.slice(space + 1) };
  };
}
