import { LinkToActor } from '../parts/actor-link.tsx';
import { Badge } from '../parts/badge.tsx';
import { Loading } from '../parts/empty.tsx';
import { Problem } from '../parts/problem.tsx';
import { type RowColumn, Rows } from '../parts/rows.tsx';
import { Age } from '../parts/time.tsx';
import { count } from '../parts/words.ts';
import { type TreeNode, useActorTree } from '../state/actor-tree.ts';
import { isSession, useTitles } from '../state/titles.ts';

const columns = (titleOf: (id: string) => string): readonly RowColumn<TreeNode>[] => [
  {
    title: 'Actor',
    class: 'grow',
    cell: ({ actor: { kind, id }, depth }) => (
      <span class={`within within-${depth}`}>
        <LinkToActor kind={kind} id={id} title={titleOf(id)} />
      </span>
    ),
  },
  { title: 'State', class: 'state', cell: ({ actor: { path } }) => <Badge state={path} /> },
  { title: 'For', class: 'number', cell: ({ actor: { since } }) => <Age since={since} /> },
];

/** The actors that mention `q`, below their parents. */
export function ActorTreeRows({ q }: { readonly q: string }) {
  const { value, error, reload } = useActorTree(q);
  const ids = value?.nodes.flatMap(({ actor: { kind, id } }) => (isSession(kind) ? [id] : []));
  const titleOf = useTitles(ids ?? []);
  if (value === undefined)
    return error === undefined ? <Loading /> : <Problem error={error} retry={reload} />;
  return (
    <>
      {error !== undefined && <Problem error={error} retry={reload} />}
      {value.isCut && (
        <p class="notice">
          Only {count(value.nodes.length)} actors are shown. Search for a part of an id to see those that have
          to do with it.
        </p>
      )}
      <Rows
        label="Actors by environment, session and conversation"
        columns={columns(titleOf)}
        items={value.nodes}
      />
    </>
  );
}
