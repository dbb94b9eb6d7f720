/** Format 5 → 6: conversations get a list by the time at which they were created. */

import { placeOf } from '../lists/places.ts';
import { conversationPlaces, conversationRecords } from '../records/conversations.ts';
import type { Store } from '../store.ts';
import { type Pass, passOver, workspacesOf } from './conversion.ts';

export function* placeConversations(store: Store): Generator<Pass<unknown>> {
  for (const workspaceId of workspacesOf(store))
    yield passOver(conversationRecords, workspaceId, [], (tx, { createdAt }, [id = '']) =>
      tx.mark(conversationPlaces, workspaceId, placeOf(createdAt, id)),
    );
}
