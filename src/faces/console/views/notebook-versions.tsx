import { Action } from '../parts/action.tsx';
import { Problem } from '../parts/problem.tsx';
import { Age } from '../parts/time.tsx';
import { useClient, useData } from '../state/data.ts';

/**
 * The versions of a notebook, newest first: who changed the notebook, and when. An earlier version can be restored while no
 * session is open.
 */
export function NotebookVersions({
  id,
  onRestored,
}: {
  readonly id: string;
  readonly onRestored: () => void;
}) {
  const client = useClient();
  const versions = useData((_, signal) => client.notebooks.versions(id, { signal }), [id]);
  const items = versions.value ?? [];
  const restore = async (version: string) => {
    const { updatedAt: expectedUpdatedAt } = await client.notebooks.get(id);
    await client.notebooks.restore(id, version, { expectedUpdatedAt });
  };
  return (
    <details class="versions">
      <summary>
        {items.length === 1 ? 'One version' : `${items.length} versions`}
        {items[0]?.updatedBy !== undefined && `, the last change by ${items[0].updatedBy}`}
      </summary>
      {versions.error !== undefined && <Problem error={versions.error} retry={versions.reload} />}
      <ul class="stack">
        {items.map(({ updatedAt, updatedBy, title, cellCount, isCurrent }) => (
          <li key={updatedAt}>
            <Age since={updatedAt} /> {updatedBy ?? 'unknown'}: {title ?? 'untitled'}, {cellCount}{' '}
            {cellCount === 1 ? 'cell' : 'cells'}{' '}
            {isCurrent ? (
              '(current)'
            ) : (
              <Action
                label="Restore"
                confirm="The notebook gets the state of that time. Its present state stays as a version."
                run={() => restore(updatedAt)}
                onDone={() => {
                  versions.reload();
                  onRestored();
                }}
              />
            )}
          </li>
        ))}
      </ul>
    </details>
  );
}
