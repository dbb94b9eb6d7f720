/**
 * Judges notebooks as compare-and-set registers.
 *
 * A write says which version it expects, and every version is unique. So the versions of a notebook are a chain, and their order
 * is known. A history is linearizable exactly if each version has one successor and the chain fits the times: once anybody knows
 * that the chain has reached a version, no read that begins later returns an earlier one, and a write is refused only if something
 * may have replaced the version that it expected.
 */
import { grouped } from './grouped.ts';
import { type Entry, ofKind, type RegisterRead, type RegisterWrite } from './history.ts';

/** Returns one line for each violation. */
export function judgeRegisters(entries: readonly Entry[]): string[] {
  const writes = grouped(ofKind(entries, 'register-write'), ({ register }) => register);
  const reads = grouped(ofKind(entries, 'register-read'), ({ register }) => register);
  return [...new Set([...writes.keys(), ...reads.keys()])].flatMap((register) =>
    new Register(writes.get(register) ?? [], reads.get(register) ?? [])
      .judge()
      .map((problem) => `the notebook ${register}: ${problem}`),
  );
}

class Register {
  readonly #writes: readonly RegisterWrite[];
  readonly #reads: readonly RegisterRead[];
  /** The write that made each version. */
  readonly #made = new Map<string, RegisterWrite>();
  readonly #problems: string[] = [];

  constructor(writes: readonly RegisterWrite[], reads: readonly RegisterRead[]) {
    this.#writes = writes;
    this.#reads = reads;
  }

  judge(): string[] {
    this.#findVersions();
    const places = this.#chain();
    const reachedBy = this.#reachedBy(places);
    this.#judgeTimes(places, reachedBy);
    this.#judgeRefusals();
    return this.#problems;
  }

  /** A write without an answer has happened if a client has read its token. */
  #findVersions(): void {
    const byToken = new Map(this.#writes.map((write) => [write.token, write]));
    for (const write of this.#writes)
      if (typeof write.answer === 'object') this.#made.set(write.answer.version, write);
    for (const { version, token } of this.#reads) {
      const write = byToken.get(token);
      const maker = this.#made.get(version);
      if (maker === undefined && write?.answer === 'unknown') this.#made.set(version, write);
      else if (maker !== write)
        this.#problems.push(`version ${version} was read with ${token}, which another write wrote`);
    }
  }

  /** Returns the place of each version in the chain. */
  #chain(): ReadonlyMap<string, number> {
    const successors = grouped([...this.#made], ([, { expected }]) => expected);
    for (const [version, { length }] of successors)
      if (length > 1) this.#problems.push(`version ${version} was replaced ${length} times`);
    const places = new Map<string, number>();
    const known = new Set([...this.#reads.map(({ version }) => version), ...successors.keys()]);
    for (const origin of known) {
      if (this.#made.has(origin)) continue;
      if (places.size > 0) this.#problems.push(`version ${origin} follows no other version`);
      let place = 0;
      for (let at: string | undefined = origin; at !== undefined && !places.has(at); ) {
        places.set(at, place++);
        at = successors.get(at)?.[0]?.[0];
      }
    }
    return places;
  }

  /**
   * Returns, by place, the earliest time at which a client knew that the chain had reached that
   * place.
   */
  #reachedBy(places: ReadonlyMap<string, number>): number[] {
    const times = Array.from({ length: places.size + 1 }, () => Number.POSITIVE_INFINITY);
    const note = (place: number | undefined, at: number) => {
      if (place !== undefined && at < times[place]!) times[place] = at;
    };
    for (const [version, { to, answer }] of this.#made)
      if (answer !== 'unknown') note(places.get(version), to);
    for (const { version, to } of this.#reads) note(places.get(version), to);
    for (const { expected, to, answer } of this.#writes) {
      const place = places.get(expected);
      if (answer === 'conflict' && place !== undefined) note(place + 1, to);
    }
    for (let place = times.length - 2; place >= 0; place--)
      times[place] = Math.min(times[place]!, times[place + 1]!);
    return times;
  }

  #judgeTimes(places: ReadonlyMap<string, number>, reachedBy: readonly number[]): void {
    for (const { version, from } of this.#reads) {
      const place = places.get(version);
      const lateMs = place === undefined ? 0 : from - reachedBy[place + 1]!;
      if (lateMs > 0)
        this.#problems.push(
          `version ${version} was read ${Math.round(lateMs)} ms after it was known to be replaced`,
        );
    }
    for (const [version, { from }] of this.#made) {
      const place = places.get(version);
      if (place !== undefined && from > reachedBy[place]!)
        this.#problems.push(`version ${version} was known before its write was sent`);
    }
  }

  #judgeRefusals(): void {
    const attempts = grouped(this.#writes, ({ expected }) => expected);
    for (const write of this.#writes) {
      if (write.answer !== 'conflict') continue;
      const others = attempts.get(write.expected) ?? [];
      if (!others.some(({ answer, from }) => answer !== 'conflict' && from <= write.to))
        this.#problems.push(
          `a write on version ${write.expected} was refused, though nothing had replaced it`,
        );
    }
  }
}
