/**
 * A cache of the tables of remote datasources, kept for some minutes: reading all columns takes some databases
 * seconds, and an agent asks again and again. An entry belongs to one revision of a connection. It has no
 * permissions: the caller checks the right to read each time, before it asks the cache.
 */
import type { Datasource } from '#src/contract/wire/datasource.ts';

/** One table, and its columns with the types that the database names. */
export interface DescribedTable {
  readonly schema: string | null;
  readonly name: string;
  readonly columns: readonly { readonly name: string; readonly type: string }[];
}

/** The tables of one datasource. */
export interface Description {
  readonly tables: readonly DescribedTable[];
  /** Whether the database has more columns than are listed. */
  readonly isCut: boolean;
}

/** Limits of the cache. */
export interface DescriptionLimits {
  readonly count: number;
  /** Most bytes of all descriptions together, as JSON. */
  readonly bytes: number;
  readonly ageMs: number;
}

interface StoredDescription {
  readonly id: string;
  readonly revision: number;
  readonly description: Description;
  readonly bytes: number;
  readonly at: number;
}

type DatasourceVersion = Pick<Datasource, 'slug' | 'id' | 'revision'>;

const LIMITS: DescriptionLimits = { count: 200, bytes: 8 * 1024 * 1024, ageMs: 5 * 60_000 };

/** Keeps descriptions in memory within its limits; the oldest are dropped first. */
export class Descriptions {
  readonly #limits: DescriptionLimits;
  readonly #now: () => number;
  /** In order of insertion, so the first entry is the oldest. */
  readonly #kept = new Map<string, StoredDescription>();
  #bytes = 0;

  constructor(limits: DescriptionLimits = LIMITS, now: () => number = () => performance.now()) {
    this.#limits = limits;
    this.#now = now;
  }

  /** Returns how many descriptions are kept, and their bytes. */
  get size(): { readonly count: number; readonly bytes: number } {
    return { count: this.#kept.size, bytes: this.#bytes };
  }

  /** Returns the description of this revision, if it is kept and recent. */
  get(workspaceId: string, { slug, id, revision }: DatasourceVersion): Description | undefined {
    this.#dropOld();
    const kept = this.#kept.get(keyOf(workspaceId, slug));
    return kept?.id === id && kept.revision === revision ? kept.description : undefined;
  }

  /** Keeps a description, unless it alone takes more than half of the space. */
  keep(workspaceId: string, { slug, id, revision }: DatasourceVersion, description: Description): void {
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

  /** Forgets a datasource: its connection was replaced or deleted. */
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
