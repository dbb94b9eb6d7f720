/**
 * A trouble that a disk has for a while.
 * - `slow`: each commit takes very long.
 * - `full`: commits fail for lack of space. The server may learn of it before the first one fails, or by it.
 * - `broken`: the next commit fails with an input/output error, after which the store is written no more.
 */
export type Trouble = 'slow' | 'full' | 'broken';

/** The disk of a world: the records of its store in the order of their keys. It outlives the lives of servers. */
import { createHash } from 'node:crypto';
import { type Life, OUTSIDE, type World, world } from '../world/world.ts';

/** The writes of a commit, by the texts of their keys. `undefined` removes a record. */
export type Writes = Map<string, Buffer | undefined>;

export interface TextRange {
  readonly start: string | undefined;
  readonly end: string | undefined;
  readonly reverse: boolean;
  readonly limit: number;
  readonly exclusiveStart: boolean;
}

/** Returns the text of a key, which sorts as LMDB sorts keys. Bytes in a key are the bound after every id. */
export function textOf(key: readonly (string | Uint8Array)[]): string {
  return key.map((part) => (typeof part === 'string' ? part : '\uffff')).join('\0');
}

interface Flush {
  readonly writes: Writes;
  readonly life: Life;
  readonly flushMs: number;
  readonly newsMs: number;
  readonly resolve: (isDone: boolean) => void;
  readonly reject: (error: Error) => void;
}

const SHARED_TURN_MS = 0.05;
/** How much longer a commit takes on a slow disk. */
const SLOWNESS = 100;

export class Disk {
  readonly #values = new Map<string, Buffer>();
  #keys: string[] = [];
  /** Whether somebody reads a range of `#keys`, so that they are copied before they change. */
  #isRead = false;
  /** Called once, at the edge of the next commit, with its life, which may end there. */
  atNextCommit: ((life: Life) => void) | undefined;
  /** The present trouble. */
  trouble: Trouble | undefined;
  /** Whether the system tells how little space is left. Other programs may take it between two looks. */
  isKnownFull = false;
  /** When something was wrong last. */
  troubledAtMs = Number.NEGATIVE_INFINITY;
  /** Until when a commit that a slow disk holds is under way. */
  slowUntilMs = Number.NEGATIVE_INFINITY;
  #underWay = 0;
  /** The process that commits. */
  #holder: Life | undefined;
  readonly #waiting: { readonly life: Life; readonly begin: (before: Life | undefined) => void }[] = [];
  /** Whether a process has opened the store during the present commit. */
  #isRewound = false;
  /** The values before a commit that the next one overwrites. */
  #overwritten: Writes | undefined;
  /** Ends the flush that is under way. */
  #endFlush: (() => void) | undefined;
  /** A commit of an ended life was lost, so the later ones of that life are lost, too. */
  readonly #losers = new Set<Life>();
  /** Lives whose end decides their commit (`#watch`). */
  readonly #watched = new WeakSet<Life>();

  get(text: string): Buffer | undefined {
    return this.#values.get(text);
  }

  /** Whether a commit is under way. */
  get isCommitting(): boolean {
    return this.#underWay > 0;
  }

  /**
   * Resolves, in the life that commits, `newsMs` after the writes are on the disk, which takes `flushMs`. One commit is made at a time,
   * of whatever process.
   */
  commit(writes: Writes, life: Life, flushMs: number, newsMs: number): Promise<boolean> {
    this.#underWay++;
    return new Promise((resolve, reject) => {
      this.#lock(life, (before) => {
        if (life.isOver && before !== life) {
          this.#underWay--; // killed while it waited for another process
          this.#unlock();
        } else this.#flush({ writes, life, flushMs, newsMs, resolve, reject });
      });
    });
  }

  /** Resolves as `commit` does. `decide` returns the writes once nobody else commits, and until the commit nobody else does. */
  decide(decide: () => Writes, life: Life, flushMs: number, newsMs: number): Promise<boolean> {
    const now = world();
    this.#underWay++;
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#underWay--;
        this.#unlock();
      };
      this.#lock(life, () => {
        if (life.isOver) return leave();
        const begin = () => {
          isBegun = true;
          const writes = decide();
          if (life.isOver) leave();
          else this.#flush({ writes, life, flushMs, newsMs, resolve, reject });
        };
        let isBegun = false;
        now.after(SHARED_TURN_MS, begin, life);
        now.atEnd(life, () => {
          if (!isBegun) leave();
        });
      });
    });
  }

  /** A process opens the store. While another one commits, LMDB takes the number of the last transaction from before that commit. */
  opened(life: Life): void {
    const holder = this.#holder;
    if (holder === undefined || holder.isOver || holder === life) return;
    this.#isRewound = true;
    world().trace.add('disk', 'is opened during a commit');
  }

  /** Begins when no other process commits. `begin` gets the life that committed before, if it had to wait. */
  #lock(life: Life, begin: (before: Life | undefined) => void): void {
    if (this.#holder !== undefined) {
      this.#waiting.push({ life, begin });
      return;
    }
    this.#holder = life;
    begin(undefined);
  }

  /** Lets one of the processes that wait for their turn have it, each with the first of its commits. */
  #unlock(): void {
    const before = this.#holder;
    this.#holder = undefined;
    const lives = [...new Set(this.#waiting.map(({ life }) => life))];
    if (lives.length === 0) return;
    const life = lives.length === 1 ? lives[0]! : world().ofLinks.pick(lives);
    const [next] = this.#waiting.splice(
      this.#waiting.findIndex((waiter) => waiter.life === life),
      1,
    );
    this.#holder = life;
    next!.begin(before);
  }

  #flush({ writes, life, flushMs, newsMs, resolve, reject }: Flush): void {
    const now = world();
    const { trouble } = this;
    if (trouble !== undefined) this.troubledAtMs = now.nowMs;
    const flush = () => {
      if (this.#endFlush !== flush) return;
      this.#endFlush = undefined;
      this.#underWay--;
      this.#takeEdge(life);
      const failure = life.isOver ? undefined : failureOf(trouble);
      if (failure !== undefined) {
        now.trace.add('disk', failure.message);
        now.count(`commits that failed: ${failure.code}`);
        if (trouble === 'broken') this.trouble = undefined;
        now.after(newsMs, () => reject(failure), life);
      } else if (life.isOver && (this.#losers.has(life) || now.ofDisk.is(0.5))) {
        this.#losers.add(life);
        now.trace.add('disk', 'a commit is lost');
        now.count('commits lost in crashes');
      } else {
        this.#applyNext(writes);
        now.trace.add('disk', `${writes.size} ${digestOf(writes)}`);
        now.count('commits');
        now.after(newsMs, () => resolve(true), life);
      }
      this.#unlock();
    };
    this.#endFlush = flush;
    if (life.isOver) {
      flush();
      return;
    }
    this.#watch(life);
    const takesMs = flushMs * (trouble === 'slow' ? SLOWNESS : 1);
    if (trouble === 'slow') this.slowUntilMs = now.nowMs + takesMs;
    now.after(takesMs, flush, OUTSIDE);
  }

  /**
   * Decides the commit of a life when the life ends. The system reports the end of a process only after its last call of the disk has
   * returned. So whoever takes over its records reads them with that commit or without it, and the commit never comes later.
   */
  #watch(life: Life): void {
    if (this.#watched.has(life)) return;
    this.#watched.add(life);
    world().atEnd(life, () => {
      if (this.#holder === life) this.#endFlush?.();
    });
  }

  /** Begins or ends a time in which something is wrong. */
  setTrouble(trouble: Trouble | undefined, isKnownFull = false): void {
    const now = world();
    if (this.trouble !== undefined) this.troubledAtMs = now.nowMs;
    this.trouble = trouble;
    this.isKnownFull = isKnownFull;
    now.trace.add('disk', `is ${trouble ?? 'sound'}`);
  }

  /** A crash that waits for a commit comes just before it is on the disk, or just after. */
  #takeEdge(life: Life): void {
    const end = this.atNextCommit;
    if (end === undefined || life.isOver) return;
    this.atNextCommit = undefined;
    const now = world();
    if (now.ofFate.is(0.4)) end(life);
    else now.after(now.ofFate.next() * 0.02, () => end(life), OUTSIDE);
  }

  /** Applies a commit. The one before is overwritten if a process has opened the store during it. */
  #applyNext(writes: Writes): void {
    if (this.#overwritten !== undefined) {
      world().trace.add('disk', 'a commit is overwritten');
      world().count('overwritten commits');
      this.#apply(this.#overwritten);
      this.#overwritten = undefined;
    }
    if (this.#isRewound)
      this.#overwritten = new Map([...writes.keys()].map((text) => [text, this.get(text)]));
    this.#isRewound = false;
    this.#apply(writes);
  }

  #apply(writes: Writes): void {
    for (const [text, value] of writes) {
      const isNew = !this.#values.has(text);
      if (value !== undefined) {
        if (isNew) this.#change((keys) => keys.splice(indexOf(keys, text), 0, text));
        this.#values.set(text, value);
      } else if (!isNew) {
        this.#change((keys) => keys.splice(indexOf(keys, text), 1));
        this.#values.delete(text);
      }
    }
  }

  #change(change: (keys: string[]) => void): void {
    if (this.#isRead) this.#keys = [...this.#keys];
    this.#isRead = false;
    change(this.#keys);
  }

  /** Yields the keys of a range as they are now. */
  *keysBetween({ start, end, reverse, limit, exclusiveStart }: TextRange): Generator<string> {
    this.#isRead = true;
    const keys = this.#keys;
    const step = reverse ? -1 : 1;
    let at = reverse ? lastUpTo(keys, start) : start === undefined ? 0 : indexOf(keys, start);
    for (let given = 0; given < limit; at += step) {
      const text = keys[at];
      if (text === undefined) return;
      if (end !== undefined && (reverse ? text <= end : text >= end)) return;
      if (exclusiveStart && text === start) continue;
      given++;
      yield text;
    }
  }
}

/** Returns the place of the first key that is not before `text`. */
function indexOf(keys: readonly string[], text: string): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (keys[middle]! < text) low = middle + 1;
    else high = middle;
  }
  return low;
}

function lastUpTo(keys: readonly string[], text: string | undefined): number {
  if (text === undefined) return keys.length - 1;
  const at = indexOf(keys, text);
  return keys[at] === text ? at : at - 1;
}

interface DiskFailure extends Error {
  readonly code: string;
}

/** Returns the error of a commit, as lmdb-js gives it. */
function failureOf(trouble: Trouble | undefined): DiskFailure | undefined {
  if (trouble === 'full')
    return Object.assign(new Error('No space left on device'), { code: 'ENOSPC', errno: 28 });
  if (trouble === 'broken') return Object.assign(new Error('Input/output error'), { code: 'EIO', errno: 5 });
  return undefined;
}

function digestOf(writes: Writes): string {
  const hash = createHash('md5');
  for (const [text, value] of writes) hash.update(text).update(value ?? '');
  return hash.digest('hex');
}

const disks = new WeakMap<World, Disk>();

/** Returns the disk of a world. */
export function diskOf(of: World): Disk {
  let disk = disks.get(of);
  if (disk === undefined) {
    disk = new Disk();
    disks.set(of, disk);
  }
  return disk;
}
