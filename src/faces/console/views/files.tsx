import type { FileEntry } from '#src/contract/wire/files.ts';
import { Empty } from '../parts/empty.tsx';
import { ListView, PAGE_ITEMS } from '../parts/list-view.tsx';
import { Age } from '../parts/time.tsx';
import { bytes } from '../parts/words.ts';
import { here, place } from '../state/route.ts';

/** The files of the workspace, which its notebooks read and write. */
export function Files() {
  const { prefix = '' } = place.value.filters;
  const folders = prefix.split('/').slice(0, -1);
  return (
    <ListView<FileEntry>
      title="Files"
      lead="The working directory of the notebooks of this workspace."
      columns={[
        {
          title: 'Name',
          class: 'grow',
          cell: ({ path, type }) => {
            const name = path.slice(prefix.length);
            return type === 'folder' ? (
              <a href={here(['files'], { prefix: path })}>{name}</a>
            ) : (
              <span>{name}</span>
            );
          },
        },
        { title: 'Size', class: 'number', cell: (file) => (file.bytes === null ? '' : bytes(file.bytes)) },
        { title: 'Changed', class: 'number', cell: ({ updatedAt }) => <Age since={updatedAt} /> },
      ]}
      load={(client, after, signal) => client.files.list({ prefix, limit: PAGE_ITEMS, after, signal })}
      inputs={[prefix]}
      filters={
        <nav class="crumbs" aria-label="Folders">
          <a href={here(['files'])}>files</a>
          {folders.map((name, i) => {
            const path = `${folders.slice(0, i + 1).join('/')}/`;
            return (
              <span key={path}>
                {' / '}
                <a href={here(['files'], { prefix: path })}>{name}</a>
              </span>
            );
          })}
        </nav>
      }
      empty={
        <Empty title="There are no files here">
          Notebooks write here, and so does <code>troupe files put</code>
        </Empty>
      }
    />
  );
}
