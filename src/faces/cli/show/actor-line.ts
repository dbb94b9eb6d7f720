import type { ActorStreamEvent } from '#src/contract/wire/actor.ts';
import type { Style } from '../style.ts';

/** Returns an event of an actor as one line; undefined for an event about the stream itself. */
export function actorLine(event: ActorStreamEvent, style: Style): string | undefined {
  const time = style.dim(event.time.slice('2026-01-01T'.length));
  switch (event.type) {
    case 'actor.moved': {
      const { kind, id, from, to, events } = event.data;
      const move = from === null ? `in memory as ${to}` : from === to ? to : `${from} → ${to}`;
      return `${time}  ${kind} ${id}  ${move}${events.length === 0 ? '' : style.dim(`  (${events.join(' ')})`)}`;
    }
    case 'actor.refused': {
      const { kind, id, state, event: type, code, count, title } = event.data;
      const times = count === 1 ? '' : ` ${count} times`;
      const refusal = style.red(`refused ${type}${times} in ${state}`);
      return `${time}  ${kind} ${id}  ${refusal}: ${title} (${code})`;
    }
    case 'actor.left': {
      const { kind, id, state, presence } = event.data;
      return `${time}  ${kind} ${id}  ${presence} in ${state}`;
    }
    case 'actors.resync-required':
      return style.yellow(`${time}  the stream was cut off (${event.data.reason}) and begins again`);
    default:
      return undefined;
  }
}

/** Returns whether the event is about an actor that matches the filters. */
export function isAboutActor(
  event: ActorStreamEvent,
  { state, find }: { readonly state?: string | undefined; readonly find?: string | undefined },
): boolean {
  if (!('id' in event.data)) return state === undefined && find === undefined;
  const { data } = event;
  const states = 'to' in data ? [data.from ?? '', data.to] : [data.state];
  const isIn = (path: string) => path === state || path.startsWith(`${state}.`);
  if (state !== undefined && !states.some(isIn)) return false;
  const ids = [data.id, ...('links' in data ? data.links.map(({ id }) => id) : [])];
  return find === undefined || ids.some((id) => id.toLowerCase().includes(find.toLowerCase()));
}
