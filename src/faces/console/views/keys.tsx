import { Badge } from '../parts/badge.tsx';
import { Loading } from '../parts/empty.tsx';
import { Problem } from '../parts/problem.tsx';
import { ViewHead } from '../parts/view-head.tsx';
import { counted } from '../parts/words.ts';
import { useData } from '../state/data.ts';

/** The keyring that seals connections. Keys are named here, never shown. */
export function Keys() {
  const keys = useData((client, signal) => client.keys.list({ signal }), []);
  return (
    <section class="view">
      <ViewHead title="Keys">
        <p class="lead">
          The keys that seal connections. <code>troupe keys add</code> adds a key, and{' '}
          <code>troupe keys rotate</code> seals all connections with a new key.
        </p>
      </ViewHead>
      {keys.error !== undefined && <Problem error={keys.error} retry={keys.reload} />}
      {keys.value === undefined && keys.error === undefined && <Loading />}
      {keys.value !== undefined && (
        <ul class="card list">
          {keys.value.items.map(({ id, active, sealed }) => (
            <li key={id}>
              <code>{id}</code>
              <Badge state={active ? 'seals new records' : 'closed'} tone={active ? 'good' : 'over'} />
              <span class="faint">seals {counted(sealed, 'connection')}</span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
