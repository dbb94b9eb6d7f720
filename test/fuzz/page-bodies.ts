/** Bodies of the requests of marimo's page, by their path. Each text in them is a place for another one. */

const SQL = {
  requestId: 'r1',
  engine: 'engine',
  database: 'main',
  schemaPath: ['a'],
  schema: 'public',
  tableName: 't',
};
const CONFIG = { disabled: false, hide_code: false };

export const PAGE_BODIES: Readonly<Record<string, readonly object[]>> = {
  'api/document/transaction': [
    { changes: [{ type: 'set-code', cellId: 'b', code: '1' }] },
    {
      changes: [
        { type: 'create-cell', cellId: 'c', code: '1', name: '_', config: CONFIG, before: 'a', after: 'b' },
      ],
    },
    { changes: [{ type: 'move-cell', cellId: 'b', before: 'a', after: 'a' }] },
    { changes: [{ type: 'set-name', cellId: 'b', name: 'named' }] },
    { changes: [{ type: 'set-config', cellId: 'b', ...CONFIG }] },
    { changes: [{ type: 'delete-cell', cellId: 'nothing' }] },
    { changes: [{ type: 'reorder-cells', cellIds: ['a', 'b'] }] },
  ],
  'api/kernel/run': [{ cellIds: ['b'], codes: ['1'] }],
  'api/kernel/set_ui_element_value': [{ objectIds: ['x'], values: ['1'] }],
  'api/kernel/set_model_value': [
    { modelId: 'm', message: { method: 'update', state: { a: 'b' } }, buffers: ['QQ=='] },
  ],
  'api/kernel/function_call': [{ functionCallId: 'f', namespace: 'n', functionName: 'f', args: { a: 'b' } }],
  'api/datasources/preview_column': [
    { sourceType: 'local', source: 's', tableName: 't', columnName: 'c', fullyQualifiedTableName: 'q' },
  ],
  'api/datasources/preview_datasource_connection': [{ engine: 'e' }],
  'api/datasources/preview_sql_schema_list': [SQL],
  'api/datasources/preview_sql_table_list': [SQL],
  'api/datasources/preview_sql_table': [SQL],
  'api/datasources/discover': [{ requestId: 'r' }],
  'api/sql/validate': [
    { requestId: 'r', query: 'SELECT 1', onlyParse: true, engine: 'e', dialect: 'duckdb' },
  ],
  'api/kernel/code_autocomplete': [{ id: 'i', document: 'pri', cellId: 'a' }],
  'api/kernel/interrupt': [{ any: 'x' }],
  'api/kernel/delete': [{ cellId: 'nothing' }],
  'api/kernel/set_cell_config': [{ configs: { b: { any: 'x' } } }],
  'api/kernel/save': [{ layout: { type: 'grid', data: { a: ['b'] } } }],
  'api/kernel/save_app_config': [
    {
      config: {
        width: 'full',
        app_title: 'T',
        css_file: 'c',
        html_head_file: 'h',
        sql_output: 's',
        auto_download: ['html'],
      },
    },
  ],
  'api/kernel/rename': [{ filename: 'new.py' }],
  'api/kernel/read_code': [{ any: 'x' }],
  'api/kernel/instantiate': [{ objectIds: ['a'], values: ['b'] }],
  'api/kernel/save_user_config': [{ config: { a: 'b' } }],
  'api/kernel/format': [{ codes: { a: 'x=1' }, lineLength: 79 }],
  'api/secrets/keys': [{ requestId: 'r' }],
  'api/secrets/create': [{ key: 'KEY', value: 'v', provider: 'env', name: 'n' }],
  'api/export/html': [{ any: 'x' }],
  'api/export/update_cell_outputs': [{ cellIdsToOutput: { a: ['text/plain', 'x'] } }],
  'api/files/list_files': [{ path: '/' }],
  'api/files/file_details': [{ path: '/a.txt' }],
  'api/files/search': [{ query: 'a', path: '/' }],
  'api/files/update': [{ path: '/a.txt', contents: 'text' }],
  'api/files/delete': [{ path: '/nothing' }],
  'api/files/move': [{ path: '/nothing', newPath: '/nowhere' }],
  'api/files/copy': [{ path: '/a.txt', newPath: '/nowhere/there' }],
  'api/packages/add': [{ package: 'nothing-of-this-name', upgrade: false }],
  'api/packages/remove': [{ package: 'nothing' }],
  'api/packages/sandbox': [{ any: 'x' }],
  'api/nothing': [{ any: 'x' }],
};

const field = (name: string, value: string) =>
  `--cut\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
const file = (head: string, content: string) => `--cut\r\n${head}\r\n\r\n${content}\r\n--cut--\r\n`;
const FILE_HEAD = 'content-disposition: form-data; name="file"; filename="f"';
const FIELDS = field('path', '/') + field('type', 'file');

/** Forms of an upload, with the text in each of their parts. */
export const FORM_PLACES: readonly (readonly [string, (text: string) => string])[] = [
  ['path', (text) => field('path', text) + field('type', 'file') + field('name', 'n') + file(FILE_HEAD, 'x')],
  ['type', (text) => field('path', '/') + field('type', text) + field('name', 'n') + file(FILE_HEAD, 'x')],
  ['name', (text) => FIELDS + field('name', text) + file(FILE_HEAD, 'x')],
  ['file', (text) => FIELDS + field('name', 'fuzz.txt') + file(FILE_HEAD, text)],
  ['file name', (text) => FIELDS + field('name', 'n') + file(`${FILE_HEAD}${text}"`, 'x')],
  ['field name', (text) => field(text, 'x') + FIELDS + file(FILE_HEAD, 'x')],
  ['head', (text) => `--cut\r\n${text}\r\n\r\nx\r\n--cut--`],
  ['before the first boundary', (text) => text + FIELDS],
  ['after a boundary', (text) => `--cut${text}\r\n`],
  [
    'many boundaries',
    (text) => `--cut\r\n${FILE_HEAD}\r\n\r\n${'\r\n--cu'.repeat(text.length / 6)}\r\n--cut--`,
  ],
];
