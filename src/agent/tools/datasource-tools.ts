import Type from 'typebox';
import { untilAborted } from '#src/base/async/until-aborted.ts';
import type { Principal } from '#src/base/caller/principal.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { TraceContext } from '#src/base/tracing/trace-context.ts';
import { completed, cut, defineTool, failed, type Tool, type ToolCall } from './tool.ts';

export interface DatasourceSummary {
  readonly slug: string;
  readonly kind: string;
  readonly name: string | null;
}

export interface TableForModel {
  readonly schema: string | null;
  readonly name: string;
  readonly columns: readonly { readonly name: string; readonly type: string }[];
}

export interface Described {
  readonly tables: readonly TableForModel[];
  /** Whether there are more columns than are listed. */
  readonly isCut: boolean;
}

interface TracedRequest {
  readonly signal: AbortSignal;
  /** The trace of the tool call. */
  readonly trace: TraceContext | undefined;
}

export interface DescribeRequest extends TracedRequest {
  readonly refresh: boolean;
}

export interface QueryAnswer {
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  readonly rows: readonly (readonly string[])[];
  /** Whether rows were left out, because there were more than `maxRows` or more than one result may have. */
  readonly isCut: boolean;
}

/** Why a datasource gave nothing, in words that a provider may see. */
export interface Refused {
  readonly refused: string;
}

export interface QueryRequest extends TracedRequest {
  readonly sql: string;
  readonly maxRows: number;
  /** Returns a cell as the model sees it. It is called for each row as it arrives, so that long cells do not stay in memory. */
  readonly shorten: (cell: unknown) => string;
}

/**
 * The datasources for agents, with the rights of the user whose prompt the agent answers. Each operation throws `not_found` for a
 * datasource that the user may not read, and stops when `signal` aborts.
 */
export interface DatasourceQueries {
  /** Returns the slugs that the caller may read. */
  list(caller: Principal, slugs: readonly string[]): Promise<readonly DatasourceSummary[]>;
  /** Resolves with tables and columns, at most some minutes old; `refresh` reads them again. */
  describe(caller: Principal, slug: string, request: DescribeRequest): Promise<Described | Refused>;
  /** Returns whether the datasource exists and the user's present role and grants do not permit reading it. */
  isKeptFrom(workspaceId: WorkspaceId, userId: string, slug: string): boolean;
  /** Runs a read-only statement. The database enforces this if it can. */
  query(caller: Principal, slug: string, request: QueryRequest): Promise<QueryAnswer | Refused>;
}

/** The datasources that a tool call may use. */
export interface UsableDatasources {
  readonly caller: Principal;
  /**
   * Resolves with the slugs that may be used, including datasources that the caller cannot read now.
   */
  slugs(): Promise<readonly string[]>;
  /** Returns for the model why this datasource may not be used; undefined when it may. */
  refusal(slug: string): string | undefined;
}

const MAX_ROWS = 500;
const SHOWN_VALUE = 400;
const slug = Type.String({
  minLength: 1,
  maxLength: 120,
  description: 'One of those that list_datasources returns.',
});
const closed = { additionalProperties: false } as const;

/** Returns tools that read datasources. */
export function datasourceTools<Call extends ToolCall>(
  queries: DatasourceQueries,
  datasourcesOf: (call: Call) => UsableDatasources,
): Tool<Call>[] {
  return [
    defineTool({
      name: 'list_datasources',
      description: 'The datasources that may be queried.',
      schema: Type.Object({}, closed),
      async run(_, call: Call) {
        const { caller, refusal, slugs } = datasourcesOf(call);
        const usable = (await slugs()).filter((asked) => refusal(asked) === undefined);
        const found = await queries.list(caller, usable);
        const text = found
          .map(({ slug: id, kind, name }) => `${id} (${kind})${name === null ? '' : ` ${name}`}`)
          .join('\n');
        const datasources = found.map(({ slug: id, kind, name }) => ({ slug: id, kind, name }));
        return completed(text || 'There are no datasources that may be queried.', { datasources });
      },
    }),
    defineTool({
      name: 'describe_datasource',
      description: 'Tables of a datasource with their columns and types; they may be five minutes old.',
      schema: Type.Object(
        {
          slug,
          refresh: Type.Optional(Type.Boolean({ description: 'True when tables were changed just now.' })),
        },
        closed,
      ),
      async run({ slug: asked, refresh = false }, call: Call) {
        const { caller, refusal } = datasourcesOf(call);
        const refused = refusal(asked);
        if (refused !== undefined) return failed(refused);
        const { signal, trace } = call;
        const described = await untilAborted(
          queries.describe(caller, asked, { refresh, signal, trace }),
          signal,
        );
        if ('refused' in described) return failed(described.refused);
        const { tables, isCut } = described;
        const note = isCut ? `\n[only the first ${tables.length} tables]` : '';
        const text = cut(`${tables.map(tableText).join('\n')}${note}`);
        return completed(text || 'It has no tables.', { tables: text, isCut });
      },
    }),
    defineTool({
      name: 'query_datasource',
      description:
        'Run one read-only SQL query, in the dialect of the datasource. Ask for few rows; aggregate in SQL.',
      schema: Type.Object(
        {
          slug,
          sql: Type.String({ minLength: 1, maxLength: 100_000 }),
          maxRows: Type.Optional(
            Type.Integer({ minimum: 1, maximum: MAX_ROWS, description: '100 if not given.' }),
          ),
        },
        closed,
      ),
      async run({ slug: asked, sql, maxRows = 100 }, call: Call) {
        const { caller, refusal } = datasourcesOf(call);
        const refused = refusal(asked);
        if (refused !== undefined) return failed(refused);
        const { signal, trace } = call;
        const request = { sql, maxRows, shorten: valueText, signal, trace };
        // A database may stop slowly, and the conversation does not wait.
        const answer = await untilAborted(queries.query(caller, asked, request), signal);
        if ('refused' in answer) return failed(answer.refused);
        return completed(rowsText(answer, maxRows), rowsData(answer));
      },
    }),
  ];
}

function tableText({ schema, name, columns }: TableForModel): string {
  const full = schema === null ? name : `${schema}.${name}`;
  return `${full}(${columns.map((column) => `${column.name} ${column.type}`).join(', ')})`;
}

function rowsText({ columns, rows, isCut }: QueryAnswer, maxRows: number): string {
  const lines = [columns.map(({ name }) => name), ...rows];
  const why = rows.length < maxRows ? ': more is too much to read at once, select less of each' : '';
  const note = isCut ? `\n[only the first ${rows.length} rows${why}]` : '';
  return `${lines.map((line) => line.join(' | ')).join('\n')}${note}`;
}

/** The most characters of the rows of one result. */
const MAX_DATA_CHARS = 64_000;

/** Returns the rows as data: as many as have room. */
function rowsData({ columns, rows, isCut }: QueryAnswer) {
  let chars = 0;
  const shown = rows.filter((row) => {
    chars += row.reduce((sum, cell) => sum + cell.length + 3, 0);
    return chars <= MAX_DATA_CHARS;
  });
  return { columns, rows: shown, isCut: isCut || shown.length < rows.length };
}

function valueText(value: unknown): string {
  if (value === null || value === undefined) return 'NULL';
  if (value instanceof Uint8Array) return `[${value.byteLength} bytes]`;
  return cut(typeof value === 'object' ? JSON.stringify(value) : String(value), SHOWN_VALUE);
}
