/**
 * The servers at the other end of hooks. Each draws how it answers a request, until all of them become healthy at the end. They note
 * each request that has reached them, and the time at which its sender got the answer or gave up.
 */
import type { Life, World } from './world.ts';

/** The address of all receivers. */
export const RECEIVERS = 'http://10.1.2.3:8080';

/** A request that has reached a receiver. */
export interface Received {
  /** The name of the hook: the first part of the path. */
  readonly hook: string;
  /** The whole path. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly atMs: number;
  /** The time of the clock then. */
  readonly clockMs: number;
  /** The process that has sent it. */
  readonly life: Life;
  /** Whether an earlier request of the hook was under way, and its sender alive. */
  readonly overlaps: boolean;
  /** The status with which the receiver answers; undefined when it gives none. */
  status: number | undefined;
  /** When the sender has got the answer, or has given up; undefined while it waits. A sender that was killed waits for ever. */
  endedMs: number | undefined;
}

/** The answer of a receiver to a request. */
export interface Reaction {
  readonly afterMs: number;
  /** Null: the connection is reset. */
  readonly status: number | null;
  /** The body breaks off. */
  readonly isCut: boolean;
}

/** How a receiver behaves. */
export type Mood = 'good' | 'mixed' | 'bad' | 'leaving';

const LATE_MS = 2500;
const AT_ONCE_MS = 4;

export class Receivers {
  readonly received: Received[] = [];
  readonly #world: World;
  readonly #moods = new Map<string, Mood>();
  /** The last request of each hook. */
  readonly #last = new Map<string, Received>();
  #isHealthy = false;

  constructor(world: World) {
    this.#world = world;
  }

  setMood(hook: string, mood: Mood): void {
    this.#moods.set(hook, mood);
  }

  /** From now on every request is answered with 200 at once. */
  heal(): void {
    this.#isHealthy = true;
  }

  /** Takes a request. Returns what is done with it; undefined when nothing ever is. */
  take(request: Pick<Received, 'path' | 'headers' | 'body' | 'life'>): [Received, Reaction | undefined] {
    const [, hook = ''] = request.path.split('/');
    const { nowMs, clock } = this.#world;
    const reaction = this.#react(hook);
    const last = this.#last.get(hook);
    const received: Received = {
      ...request,
      hook,
      atMs: nowMs,
      clockMs: clock.nowMs,
      overlaps: last !== undefined && last.endedMs === undefined && !last.life.isOver,
      status: reaction?.status ?? undefined,
      endedMs: undefined,
    };
    this.received.push(received);
    this.#last.set(hook, received);
    this.#world.count('requests to receivers');
    this.#world.trace.add('hooked', `${request.path} ${request.headers['webhook-id']} ${request.body}`);
    return [received, reaction];
  }

  #react(hook: string): Reaction | undefined {
    const { ofReceivers: random } = this.#world;
    const afterMs = random.next() * AT_ONCE_MS;
    const good = { afterMs, status: 200, isCut: random.is(0.05) };
    const mood = this.#isHealthy ? 'good' : (this.#moods.get(hook) ?? 'good');
    const dice = random.next();
    if (mood === 'good') return good;
    if (mood === 'leaving' && dice < 0.1) return { ...good, status: 410 };
    if (dice < (mood === 'bad' ? 0.2 : 0.6)) return good;
    const kind = random.next();
    if (kind < 0.05) return undefined;
    if (kind < 0.3)
      return { ...good, afterMs: random.next() * LATE_MS, status: random.pick([200, 202, 204]) };
    if (kind < 0.5) return { ...good, status: null };
    return { ...good, status: random.pick([500, 500, 503, 404, 302]) };
  }
}

const all = new WeakMap<World, Receivers>();

/** Returns the receivers of a world. */
export function receiversOf(of: World): Receivers {
  const found = all.get(of) ?? new Receivers(of);
  all.set(of, found);
  return found;
}
