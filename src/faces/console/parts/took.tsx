import type { Run } from '#src/contract/wire/run.ts';
import { Age } from './time.tsx';
import { duration } from './words.ts';

/** The duration of a run, up to its end or until now. */
export function Took({ run: { startedAt, createdAt, finishedAt } }: { readonly run: Run }) {
  const since = startedAt ?? createdAt;
  return finishedAt === null ? (
    <Age since={since} />
  ) : (
    <span>{duration(Date.parse(finishedAt) - Date.parse(since))}</span>
  );
}
