/**
 * Lists notebook sessions by the time at which they were last opened. Listing neither restores nor
 * wakes a session.
 */
import { isIdOf, timeText, type WorkspaceId } from '#src/base/ids.ts';
import { metadataFilter, shownMetadata } from '#src/base/metadata-filter.ts';
import type { NotebookSessionFilters, NotebookSessionSummary } from '#src/contract/wire/lists.ts';
import { checkCursor, type PageRequest, pageOf, timeBounds } from '#storage/lists/listing.ts';
import type { Listing } from '#storage/lists/page-builder.ts';
import { idAt } from '#storage/lists/places.ts';
import { slicedListing } from '#storage/lists/sliced-listing.ts';
import { openSessionPlaces, sessionPlaces } from '#storage/records/sessions.ts';
import { titleFilter } from '../saved/title-filter.ts';
import type { NotebookContext } from './notebook-context.ts';
import type { NotebookSessionActors } from './notebook-session-actors.ts';
import { notebookStatusOf } from './notebook-session-record.ts';

/** The filters of a list of notebook sessions. An absent member does not filter. */
export type NotebookSessionQuery = PageRequest & NotebookSessionFilters;

export class NotebookSessionList {
  readonly #context: NotebookContext;
  readonly #actors: NotebookSessionActors;

  constructor(context: NotebookContext, actors: NotebookSessionActors) {
    this.#context = context;
    this.#actors = actors;
  }

  /** Resolves with a page of sessions. Rejects with `invalid_cursor`. */
  async page(
    workspaceId: WorkspaceId,
    query: NotebookSessionQuery,
  ): Promise<Listing<NotebookSessionSummary>> {
    const { store, notebooks } = this.#context;
    checkCursor(query.after, (text) => isIdOf('notebook', idAt(text)));
    const { status, notebookId } = query;
    const places = status === undefined || status === 'closed' ? sessionPlaces : openSessionPlaces;
    const isTitled = titleFilter(query.title);
    const bounds = timeBounds(query, timeText);
    return slicedListing(store, {
      page: query,
      workspaceId,
      entriesAfter: (after) => store.list(places, workspaceId, [], pageOf({ ...query, after }, bounds)),
      itemOf: (_, place) => {
        const id = idAt(place);
        if (notebookId !== undefined && id !== notebookId) return undefined;
        const title = notebooks.title(workspaceId, id);
        const summary = isTitled(title) ? this.#summary(workspaceId, id, title) : undefined;
        return summary !== undefined && matches(summary, query) ? summary : undefined;
      },
    });
  }

  #summary(workspaceId: WorkspaceId, id: string, title: string | null): NotebookSessionSummary | undefined {
    const peek = this.#actors.peek({ workspaceId, id });
    if (peek === undefined) return undefined;
    const { environmentId, mode, metadata, work, openedAt } = peek.snapshot.context;
    const wasLost = peek.isLost;
    return {
      sessionId: id,
      notebookId: id,
      title,
      environmentId,
      mode,
      ...shownMetadata(metadata),
      status: wasLost ? 'ready' : notebookStatusOf(peek),
      currentRunId: work?.kind === 'run' && !wasLost ? work.id : null,
      createdAt: openedAt ?? peek.createdAt,
      updatedAt: peek.updatedAt,
      url: this.#context.urlOf(id),
    };
  }
}

function matches(
  { status, environmentId, metadata }: NotebookSessionSummary,
  query: NotebookSessionQuery,
): boolean {
  if (query.environmentId !== undefined && environmentId !== query.environmentId) return false;
  if (!metadataFilter(query.metadata)(metadata)) return false;
  if (query.status === undefined) return true;
  return query.status === 'open' ? status !== 'closed' : status === query.status;
}
