import type { NotebookId, SessionId, WorkspaceId } from '#src/base/ids.ts';
import { LiveNotebook } from '#src/notebook/open/live-notebook.ts';
import { SessionStream, type SessionStreamOptions } from '#src/runtime/events/session-stream.ts';

/** Returns an open notebook that has neither a kernel nor storage, and its event stream. `codes` are by cell id. */
export function openUnsavedNotebook(
  codes: Readonly<Record<string, string>>,
  options: Omit<SessionStreamOptions, 'sessionId'>,
) {
  const sessionId = 'nb_1' as SessionId;
  const stream = new SessionStream({ sessionId, ...options });
  const cells = Object.entries(codes).map(([cell_id, code]) => ({ cell_id, code, options: {} }));
  const live = new LiveNotebook({
    session: { workspaceId: 'ws_1' as WorkspaceId, id: sessionId },
    saved: {
      document: {
        id: 'nb_1' as NotebookId,
        createdAt: '2026-01-01T00:00:00.000Z',
        updatedAt: '2026-01-01T00:00:00.000Z',
        serialization: { version: '1', app: { options: {} }, cells, valid: true, ui_values: {} },
        datasourceSlugs: [],
        variables: {},
      },
      outputs: new Map(),
    },
    stream,
    notebooks: { save: (_, { after }) => ({ document: after, versionSince: 0 }) },
    store: { durable: () => undefined },
  });
  return { live, stream };
}
