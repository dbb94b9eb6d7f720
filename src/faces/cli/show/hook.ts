/** Hooks and their deliveries as text. */
import type { Delivery, Hook } from '#src/contract/wire/hook.ts';
import { safeLine } from '../safe-text.ts';
import type { Style } from '../style.ts';
import { table } from '../table.ts';
import type { ListColumn } from '../terminal.ts';
import { factLines } from './notebook.ts';

export const HOOK_COLUMNS: readonly ListColumn<Hook>[] = [
  { title: 'id', of: ({ id }) => id },
  { title: 'name', of: ({ name }) => name },
  { title: 'url', of: ({ url }) => url },
  { title: 'events', of: ({ events }) => events.join(',') },
  { title: 'status', of: ({ status }) => status },
  { title: 'waiting', of: ({ pending }) => String(pending) },
  { title: 'reason', of: reasonOf },
];

export const DELIVERY_COLUMNS: readonly ListColumn<Delivery>[] = [
  { title: 'id', of: ({ id }) => id },
  { title: 'event', of: ({ event }) => event },
  { title: 'queued', of: ({ queuedAt }) => queuedAt },
  { title: 'status', of: ({ status }) => status },
  { title: 'attempts', of: ({ attempts }) => String(attempts) },
  { title: 'answer', of: ({ responseStatus }) => (responseStatus === null ? null : String(responseStatus)) },
  { title: 'next', of: ({ nextAttemptAt }) => nextAttemptAt },
  { title: 'reason', of: reasonOf },
];

/** Returns a hook with its state and its last deliveries, the newest first. */
export function hookText(hook: Hook, deliveries: readonly Delivery[], style: Style, color: boolean): string {
  const { id, name, url, events, filter, ownerId, pending, olderSecretUntil } = hook;
  const { notebookId, jobId, metadata = {} } = filter;
  const facts = [
    ['hook', id],
    ...(name === null ? [] : [['name', safeLine(name)]]),
    ['url', url],
    ['events', events.join(', ')],
    ...(notebookId === undefined ? [] : [['notebook', notebookId]]),
    ...(jobId === undefined ? [] : [['job', jobId]]),
    ...Object.entries(metadata).map(([key, value]) => ['metadata', safeLine(`${key}=${value}`)]),
    ['owner', ownerId],
    ...(olderSecretUntil === null ? [] : [['older secret', `signs, too, until ${olderSecretUntil}`]]),
    ['status', statusText(hook, style)],
    ['waiting', String(pending)],
  ];
  const titles = DELIVERY_COLUMNS.map(({ title }) => title);
  const rows = deliveries.map((one) => DELIVERY_COLUMNS.map(({ of }) => of(one) ?? '-'));
  const log = rows.length === 0 ? '' : `\n${table(titles, rows, color)}`;
  return factLines(facts, style) + log;
}

/** Returns the status of a hook, with the reason for a pause and with a command that helps. */
function statusText({ id, status, paused, reason, ownerId }: Hook, style: Style): string {
  if (!paused) return status === 'backing-off' ? style.red(status) : style.green(status);
  if (reason === null) return `${style.yellow('paused')} by a person: troupe hooks resume ${id}`;
  const advice =
    reason.code === 'owner_left' || reason.code === 'role_too_low'
      ? `A hook keeps its owner, ${ownerId}. Create another one in its place, and then: troupe hooks delete ${id}`
      : `Once the cause is removed: troupe hooks resume ${id}`;
  return `${style.yellow('paused')}: ${reason.message}\n${advice}`;
}

function reasonOf({ reason }: Pick<Hook | Delivery, 'reason'>): string | null {
  return reason?.message ?? null;
}
