import { now } from '../state/visible.ts';
import { ago, dateTime } from './words.ts';

/** The time since `since`, which is updated every second. */
export function Age({ since }: { readonly since: string }) {
  return (
    <time dateTime={since} title={dateTime(since)}>
      {ago(now.value - Date.parse(since))}
    </time>
  );
}
