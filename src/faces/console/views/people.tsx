import type { AccessToken, Member } from '#src/contract/wire/identity.ts';
import { Empty } from '../parts/empty.tsx';
import { ListView, PAGE_ITEMS } from '../parts/list-view.tsx';
import type { RowColumn } from '../parts/rows.tsx';
import { Age } from '../parts/time.tsx';
import { dateTime } from '../parts/words.ts';
import { here } from '../state/route.ts';
import type { ViewProps } from '../view-props.ts';

const MEMBERS: readonly RowColumn<Member>[] = [
  {
    title: 'User',
    class: 'grow',
    cell: ({ userId }) => <a href={here(['audit'], { user: userId })}>{userId}</a>,
  },
  { title: 'Role', class: 'number', cell: ({ role }) => role },
  { title: 'Name', class: 'wide links', cell: ({ name }) => name ?? '' },
  { title: 'Member for', class: 'wide number', cell: ({ createdAt }) => <Age since={createdAt} /> },
];

const TOKENS: readonly RowColumn<AccessToken>[] = [
  { title: 'Token', class: 'grow', cell: ({ name }) => name },
  { title: 'User', class: 'number', cell: ({ userId }) => userId },
  { title: 'May', class: 'wide links', cell: ({ scopes }) => scopes.join(', ') },
  { title: 'Where', class: 'wide event', cell: ({ workspaceId }) => workspaceId ?? 'everywhere' },
  {
    title: 'Until',
    class: 'links',
    cell: ({ expiresAt }) => (expiresAt === null ? 'it is deleted' : dateTime(expiresAt)),
  },
];

/** The members of the workspace with their roles, or their access tokens. */
export function People({ rest: [tab] }: ViewProps) {
  const tabs = (
    <>
      <a class="tab" href={here(['people'])} aria-current={tab === undefined ? 'page' : undefined}>
        Members
      </a>
      <a class="tab" href={here(['people', 'tokens'])} aria-current={tab === 'tokens' ? 'page' : undefined}>
        Access tokens
      </a>
    </>
  );
  if (tab === 'tokens')
    return (
      <ListView
        title="People"
        lead="Access tokens of this workspace and their scopes. The token itself is shown only once, when it is created."
        columns={TOKENS}
        load={(client, after, signal) => client.accessTokens.list({ limit: PAGE_ITEMS, after, signal })}
        inputs={['tokens']}
        filters={tabs}
        empty={<Empty title="There are no tokens" />}
      />
    );
  return (
    <ListView
      title="People"
      lead="Members of this workspace. A viewer reads, an editor also writes, an owner also administers."
      columns={MEMBERS}
      load={(client, after, signal) => client.members.list({ limit: PAGE_ITEMS, after, signal })}
      inputs={['members']}
      filters={tabs}
      empty={<Empty title="There are no members" />}
    />
  );
}
