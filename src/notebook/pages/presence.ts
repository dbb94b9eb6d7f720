import { allows, type PageAccess } from '#src/base/caller/page-access.ts';
import { cutText } from '#src/base/text/cut-text.ts';
import { timestamp } from '#src/base/time/clock.ts';
import type { DocumentChange } from '#src/confined/processes/kernel/messages.ts';
import type {
  AuthorChanges,
  ChangedCell,
  NotebookPlace,
  NotebookPresence,
  PresentAgent,
  PresentPerson,
} from '#src/contract/wire/presence.ts';
import type { EventSink, Subscription } from '#src/runtime/events/event-sink.ts';
import { dataFrame } from '#src/runtime/events/frame.ts';
import type { ChangeAuthor, LiveNotebook } from '../open/live-notebook.ts';
import { configOf } from '../saved/document.ts';
import { PageStream, type PageStreams } from './page-stream.ts';

/** How many people are named. */
export const MAX_PEOPLE = 50;
/** How many authors of changes are remembered, and how many cells of each. */
export const MAX_AUTHORS = 20;
export const MAX_CHANGED_CELLS = 20;
const MAX_LABEL = 60;
/** The beginning of a cell's code in which its first line is looked for. The code may have megabytes of blanks. */
const MAX_LOOKED_CHARS = 4096;
/** Changes within this time are one message. */
const GATHER_MS = 100;

/** The functions of the server that know more about the notebook. */
export interface PresencePorts extends PageStreams {
  /** Returns the name of a member; the id when there is none. */
  readonly nameOf: (userId: string) => string;
  readonly agent: () => Omit<PresentAgent, 'ownerName'> | null;
  readonly state: () => Pick<NotebookPresence, 'title' | 'status' | 'kernelEnd'>;
}

/** A page that is open. */
export interface OpenPage {
  readonly userId: string;
  readonly access: PageAccess;
}

interface Author extends ChangeAuthor {
  readonly at: string;
  readonly cells: readonly ChangedCell[];
}

/**
 * The people and the agent in one open notebook, and the last cells that each of them changed. Its followers get the whole state
 * after each change. It exists only while there is a page, and sends nothing while nobody follows it.
 */
export class PagePresence {
  readonly #live: LiveNotebook;
  readonly #ports: PresencePorts;
  readonly #pages: () => Iterable<OpenPage>;
  readonly #followers = new Set<PageStream>();
  /** The authors of changes; the latest one is at the end. */
  readonly #authors = new Map<string, Author>();
  #timer: NodeJS.Timeout | undefined;

  constructor(live: LiveNotebook, ports: PresencePorts, pages: () => Iterable<OpenPage>) {
    this.#live = live;
    this.#ports = ports;
    this.#pages = pages;
  }

  get followerCount(): number {
    return this.#followers.size;
  }

  /** Begins a stream of the presence. `left` is called once it is over. */
  follow(place: NotebookPlace, sink: EventSink, left: () => void): Subscription {
    const stream: PageStream = new PageStream(sink, this.#ports, () => {
      this.#followers.delete(stream);
      left();
    });
    this.#followers.add(stream);
    stream.begin([dataFrame(place), dataFrame(this.#state())]);
    return stream;
  }

  /** Notes the cells that an author has changed. */
  changed(changes: readonly DocumentChange[], author: ChangeAuthor): void {
    const key = `${author.isAgent} ${author.userId}`;
    const earlier = this.#authors.get(key)?.cells ?? [];
    const cells = new Map<string, ChangedCell>();
    // One request may make ten thousand changes. Only the last ones are looked at, because only their cells are remembered.
    for (let at = changes.length - 1; at >= 0 && cells.size < MAX_CHANGED_CELLS; at--) {
      const change = changes[at]!;
      if ('cellId' in change && change.type !== 'move-cell' && !cells.has(change.cellId))
        cells.set(change.cellId, this.#cellOf(change, earlier));
    }
    if (cells.size === 0) return;
    const shown = [...cells.values()];
    for (const one of earlier) if (!cells.has(one.cellId)) shown.push(one);
    this.#authors.delete(key);
    this.#authors.set(key, { ...author, at: timestamp(), cells: shown.slice(0, MAX_CHANGED_CELLS) });
    for (const oldest of this.#authors.keys()) {
      if (this.#authors.size <= MAX_AUTHORS) break;
      this.#authors.delete(oldest);
    }
    this.tell();
  }

  /** Sends the state to all followers, soon. */
  tell(): void {
    if (this.#followers.size === 0) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      if (this.#followers.size === 0) return; // the server may have ended since, and closed its store
      const frame = Buffer.from(`data: ${JSON.stringify(this.#state())}\n\n`);
      for (const stream of this.#followers) stream.send(frame);
    }, GATHER_MS).unref();
  }

  beat(): void {
    for (const stream of this.#followers) stream.beat();
  }

  /** Ends all streams, so that the followers connect again. */
  end(): void {
    clearTimeout(this.#timer);
    for (const stream of this.#followers) stream.end();
  }

  #cellOf(
    { type, cellId }: { readonly type: string; readonly cellId: string },
    earlier: readonly ChangedCell[],
  ) {
    const cell = this.#live.view.get(cellId);
    const [line = ''] = cutText(cell?.code ?? '', 0, MAX_LOOKED_CHARS)
      .trim()
      .split('\n', 1);
    const label =
      cell === undefined
        ? (earlier.find((one) => one.cellId === cellId)?.label ?? '')
        : configOf(cell.options).name || cutText(line, 0, MAX_LABEL);
    return { cellId, label, isDeleted: type === 'delete-cell' };
  }

  #state(): NotebookPresence {
    const { nameOf, agent, state } = this.#ports;
    const highest = new Map<string, PageAccess>();
    for (const { userId, access } of this.#pages()) {
      const known = highest.get(userId);
      if (known === undefined || allows(access, known)) highest.set(userId, access);
    }
    const present = agent();
    return {
      ...state(),
      people: [...highest]
        .slice(0, MAX_PEOPLE)
        .map(([userId, access]): PresentPerson => ({ userId, name: nameOf(userId), access })),
      morePeople: Math.max(0, highest.size - MAX_PEOPLE),
      agent: present && { ...present, ownerName: nameOf(present.ownerId) },
      changes: [...this.#authors.values()]
        .reverse()
        .map((author): AuthorChanges => ({ ...author, name: nameOf(author.userId) })),
    };
  }
}
