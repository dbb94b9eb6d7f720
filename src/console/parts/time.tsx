import { now } from '../state/visible.ts';
import { ago, dateTime } from './words.ts';

/** How long ago something was, counting on. */
export function Age({ since }: { readonly since: string }) {
  return (
    <time dateTime={since} title={dateTime(since)}>
      {ago(now.value - Date.parse(since))}
    </time>
  );
}
