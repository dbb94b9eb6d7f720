import type { Run } from '#src/wire/run.ts';
import { Age } from './time.tsx';
import { duration } from './words.ts';

/** How long a run took, or has taken so far. */
export function Took({ run: { startedAt, createdAt, finishedAt } }: { readonly run: Run }) {
  const since = startedAt ?? createdAt;
  return finishedAt === null ? (
    <Age since={since} />
  ) : (
    <span>{duration(Date.parse(finishedAt) - Date.parse(since))}</span>
  );
}
