/**
 * What was found out about the tables of remote datasources, for some minutes: to ask for all columns takes some
 * databases seconds, and an agent asks again and again. It is known for one revision of a connection, and not by whom it
 * may be read: that is asked each time, before.
 */
import type { DatasourceMetadata } from '../datasources.ts';

export interface Table {
  readonly schema: string | null;
  readonly name: string;
  readonly columns: readonly { readonly name: string; readonly type: string }[];
}

export interface Description {
  readonly tables: readonly Table[];
  /** There are more columns than are told. */
  readonly isCut: boolean;
}

export interface DescriptionLimits {
  readonly count: number;
  /** Of all together, as JSON. */
  readonly bytes: number;
  readonly ageMs: number;
}

interface Kept {
  readonly id: string;
  readonly revision: number;
  readonly description: Description;
  readonly bytes: number;
  readonly at: number;
}

type Which = Pick<DatasourceMetadata, 'slug' | 'id' | 'revision'>;

const LIMITS: DescriptionLimits = { count: 200, bytes: 8 * 1024 * 1024, ageMs: 5 * 60_000 };

export class Descriptions {
  readonly #limits: DescriptionLimits;
  readonly #now: () => number;
  /** The one that was kept first comes first, so the oldest goes first. */
  readonly #kept = new Map<string, Kept>();
  #bytes = 0;

  constructor(limits: DescriptionLimits = LIMITS, now: () => number = () => performance.now()) {
    this.#limits = limits;
    this.#now = now;
  }

  /** How much is kept. */
  get size(): { readonly count: number; readonly bytes: number } {
    return { count: this.#kept.size, bytes: this.#bytes };
  }

  get(workspaceId: string, { slug, id, revision }: Which): Description | undefined {
    this.#dropOld();
    const kept = this.#kept.get(keyOf(workspaceId, slug));
    return kept?.id === id && kept.revision === revision ? kept.description : undefined;
  }

  /** One that would take most of the room alone is not kept. */
  keep(workspaceId: string, { slug, id, revision }: Which, description: Description): void {
    this.drop(workspaceId, slug);
    const bytes = Buffer.byteLength(JSON.stringify(description));
    if (bytes > this.#limits.bytes / 2) return;
    this.#kept.set(keyOf(workspaceId, slug), { id, revision, description, bytes, at: this.#now() });
    this.#bytes += bytes;
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= this.#limits.count && this.#bytes <= this.#limits.bytes) break;
      this.#remove(oldest);
    }
  }

  /** The connection is another one now, or gone. */
  drop(workspaceId: string, slug: string): void {
    this.#remove(keyOf(workspaceId, slug));
  }

  #dropOld(): void {
    const oldest = this.#now() - this.#limits.ageMs;
    for (const [key, { at }] of this.#kept) {
      if (at > oldest) break;
      this.#remove(key);
    }
  }

  #remove(key: string): void {
    this.#bytes -= this.#kept.get(key)?.bytes ?? 0;
    this.#kept.delete(key);
  }
}

function keyOf(workspaceId: string, slug: string): string {
  return `${workspaceId}/${slug}`;
}
