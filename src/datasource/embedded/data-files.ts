/** The data files of a folder, each opened once and held open, so that what is read is what was judged. */
import { constants, openSync, readdirSync, realpathSync, statSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { DatasourceFailure } from '../failure.ts';
import { DESCRIPTORS, isWithin, openFiles } from './workspace-path.ts';

export interface DataFile {
  /** Name without endings; with its folders where the bare name is taken. */
  readonly view: string;
  /** What DuckDB is to open. */
  readonly openPath: string;
  /** The table function over it. */
  readonly reader: string;
  /** The connection names this one file. */
  readonly isOnly: boolean;
}

const READERS: readonly (readonly [RegExp, (path: string, options: string) => string])[] = [
  [/\.(csv|tsv|tab)(\.gz)?$/i, (path, options) => `read_csv(${path}, ignore_errors = false${options})`],
  [/\.(json|jsonl|ndjson)(\.gz)?$/i, (path, options) => `read_json(${path}${options})`],
  [/\.(parquet|pq)$/i, (path) => `read_parquet(${path})`],
];

/** Every one of them stays open as long as the connection. */
const MAX_FILES = 500;
const MAX_DEPTH = 8;

/** `place` is a real path. Files that lead out of the workspace are left out; throws `file_unusable` for a wrong file. */
export function dataFilesIn(place: string, filesDirectory: string): DataFile[] {
  const isFolder = statSync(place).isDirectory();
  const paths = isFolder ? filesBelow(place, 0) : [place];
  const taken = new Set<string>();
  const files = paths.slice(0, MAX_FILES).flatMap((path) => {
    const openPath = openedPath(path, realpathSync(filesDirectory));
    const reader = READERS.find(([pattern]) => pattern.test(path));
    if (openPath === undefined || reader === undefined) return [];
    const view = viewName(isFolder ? relative(place, path) : basename(path), taken);
    const options = /\.gz$/i.test(path) ? ", compression = 'gzip'" : '';
    return [
      {
        view,
        openPath,
        reader: reader[1](`'${openPath.replaceAll("'", "''")}'`, options),
        isOnly: !isFolder,
      },
    ];
  });
  if (!isFolder && files.length === 0) throw new DatasourceFailure('file_unusable');
  return files;
}

function filesBelow(folder: string, depth: number): string[] {
  const entries = readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => !name.startsWith('.'))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  const files = entries.filter(
    (entry) => entry.isFile() && READERS.some(([pattern]) => pattern.test(entry.name)),
  );
  const folders = depth < MAX_DEPTH ? entries.filter((entry) => entry.isDirectory()) : [];
  return [
    ...files.map(({ name }) => join(folder, name)),
    ...folders.flatMap(({ name }) => filesBelow(join(folder, name), depth + 1)),
  ];
}

/** The file by its descriptor, where the system names what is open; `undefined` when that lies outside. */
function openedPath(path: string, root: string): string | undefined {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  const open = new Map(openFiles()).get(String(descriptor));
  if (open === undefined) return isWithin(root, realpathSync(path)) ? path : undefined;
  return isWithin(root, open) ? `${DESCRIPTORS}/${descriptor}` : undefined;
}

function viewName(path: string, taken: Set<string>): string {
  const stem = path.replace(/(\.[a-z]+)(\.gz)?$/i, '');
  const bare = basename(stem);
  const view = taken.has(bare.toLowerCase()) ? stem : bare;
  taken.add(view.toLowerCase());
  return view;
}
