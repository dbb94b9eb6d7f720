/** A record of a session is written by its home only: by the worker that has its slot in the newest table of the primary. */
import { type SlotTable, slotOf } from '#src/runtime/homes/slots.ts';
import { type Life, type World, world } from '../world/world.ts';

const tables = new WeakMap<World, SlotTable>();

/** The primary of a life has published a table. */
export function noteTable(table: SlotTable): void {
  const known = tables.get(world());
  if (known === undefined || known.number < table.number) tables.set(world(), table);
}

/** The server begins another life, with tables of its own. */
export function forgetTables(): void {
  tables.delete(world());
}

/** The kinds of actors whose id is that of a notebook or a conversation. */
const SESSIONS: ReadonlySet<string | undefined> = new Set(['notebook-session', 'agent-session']);

/** Judges the keys that a process is about to write. */
export function judgeHomes(keys: Iterable<string>, life: Life): void {
  const worker = Number(/^worker (\d+)$/.exec(life.name)?.[1]);
  const table = tables.get(world());
  if (Number.isNaN(worker) || table === undefined) return;
  for (const key of keys) {
    const [workspaceId = '', record, kind, id] = key.split('\0');
    if (record !== 'actor' || !SESSIONS.has(kind) || id === undefined) continue;
    const owner = table.owners[slotOf(workspaceId, id)];
    world().count('writes of sessions');
    if (owner !== worker)
      world().problem(`worker ${worker} writes the session ${id}, whose home is worker ${owner}`);
  }
}
