import type { AuditEntry } from '#src/contract/wire/audit.ts';
import { Badge } from '../parts/badge.tsx';
import { Empty } from '../parts/empty.tsx';
import { TextFilter } from '../parts/filter.tsx';
import { ListView, PAGE_ITEMS } from '../parts/list-view.tsx';
import type { RowColumn } from '../parts/rows.tsx';
import { dateTime } from '../parts/words.ts';
import { place } from '../state/route.ts';

const COLUMNS: readonly RowColumn<AuditEntry>[] = [
  {
    title: 'When',
    class: 'when',
    cell: ({ createdAt }) => <time dateTime={createdAt}>{dateTime(createdAt)}</time>,
  },
  { title: 'Who', class: 'number', cell: ({ userId }) => userId },
  { title: 'What', class: 'grow', cell: ({ action }) => <code>{action}</code> },
  { title: 'To what', class: 'wide links', cell: ({ target }) => <code title={target}>{target}</code> },
  {
    title: 'How it ended',
    class: 'number',
    cell: ({ outcome }) => <Badge state={outcome} tone={outcome === 'done' ? 'over' : 'bad'} />,
  },
  {
    title: 'Detail',
    class: 'wide links',
    cell: ({ detail, query }) =>
      query === undefined
        ? detail
        : `${query.statements} statements, ${query.rows} rows, ${query.durationMs} ms`,
  },
];

/** The audit: members and their actions. */
export function Audit() {
  const { user: userId = '', action = '', target = '' } = place.value.filters;
  return (
    <ListView
      title="Audit"
      lead="Actions of users in this workspace, the last first."
      columns={COLUMNS}
      load={(client, after, signal) =>
        client.audit({
          ...(userId !== '' && { userId }),
          ...(action !== '' && { action }),
          ...(target !== '' && { target }),
          order: 'desc',
          limit: PAGE_ITEMS,
          after,
          signal,
        })
      }
      inputs={[userId, action, target]}
      renewal={{ everyMs: 5000 }}
      filters={
        <>
          <TextFilter name="user" label="Who" />
          <TextFilter name="action" label="Action, such as member" />
          <TextFilter name="target" label="To what" />
        </>
      }
      empty={<Empty title="The audit has no such actions" />}
    />
  );
}
