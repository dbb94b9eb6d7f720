import { useSignal } from '@preact/signals';
import type { ConnectionTest, Datasource } from '#src/contract/wire/datasource.ts';
import { Action } from '../parts/action.tsx';
import { Empty } from '../parts/empty.tsx';
import { ListView, PAGE_ITEMS } from '../parts/list-view.tsx';
import { duration } from '../parts/words.ts';
import { useClient } from '../state/data.ts';

/** The database connections of the workspace, and whether they answer. */
export function DatasourcesView() {
  const client = useClient();
  const tests = useSignal<Readonly<Record<string, ConnectionTest>>>({});
  return (
    <ListView<Datasource>
      title="Datasources"
      lead="Database connections. Their credentials are sealed and never read back."
      columns={[
        { title: 'Slug', class: 'grow', cell: ({ slug }) => <code>{slug}</code> },
        { title: 'Kind', class: 'number', cell: ({ kind }) => kind },
        { title: 'Name', class: 'wide links', cell: ({ name }) => name ?? '' },
        { title: 'Revision', class: 'wide number', cell: ({ revision }) => revision },
        {
          title: 'Last test',
          class: 'links',
          cell: ({ slug }) => {
            const test = tests.value[slug];
            if (test === undefined) return <span class="faint">not tested here</span>;
            return (
              <span class={test.ok ? 'good' : 'bad'} title={test.message}>
                {test.ok ? `answers in ${duration(test.elapsedMs)}` : test.message}
              </span>
            );
          },
        },
        {
          title: 'Do',
          class: 'control',
          cell: ({ slug }) => (
            <Action
              key={slug}
              label="Test"
              run={async () => {
                tests.value = { ...tests.value, [slug]: await client.datasources.test(slug) };
              }}
            />
          ),
        },
      ]}
      load={(_, after, signal) => client.datasources.list({ limit: PAGE_ITEMS, after, signal })}
      inputs={[]}
      empty={
        <Empty title="There are no datasources">
          Add one: <code>troupe datasources create</code>
        </Empty>
      }
    />
  );
}
