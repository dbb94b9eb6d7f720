/** The requests for files that pages send: workspaces take turns, and so do members. */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { WorkspaceId } from '#src/base/ids.ts';
import { NO_CONTENT } from '#src/http/edge/body-stream.ts';
import { NotebookPanels } from '#src/notebook/pages/notebook-panels.ts';
import type { AuditContext } from '#src/people/audit/audit-trail.ts';

interface Search {
  readonly workspaceId: string;
  finish(): void;
}

/** Panels whose searches end when the test lets them. `begun` has the searches that have begun. */
function panelsOverHeldFiles() {
  const begun: Search[] = [];
  /** Ends the files for elements that are being stored. */
  const storing: (() => void)[] = [];
  const files = {
    folder: (workspaceId: string) =>
      new Promise((_, reject) => {
        const finish = () => reject(Object.assign(new Error('gone'), { code: 'ENOENT' }));
        begun.push({ workspaceId, finish });
      }),
  };
  const panels = new NotebookPanels({
    sessions: { modeOf: () => 'edit' },
    packages: {} as never,
    files: { files: files as never, typeOf: () => undefined, maxFileBytes: 1 },
    elementFiles: {
      store: () => new Promise((resolve) => storing.push(() => resolve('an id'))),
    },
    audit: { note: () => undefined },
  });
  const search = (workspaceId: string, userId: string, signal = new AbortController().signal) =>
    panels.files({
      context: { principal: { workspaceId: workspaceId as WorkspaceId, userId } } as AuditContext,
      notebookId: 'nb_1',
      method: 'POST',
      path: 'api/files/search',
      body: { query: 'a' },
      signal,
    });
  const store = (userId: string, signal = new AbortController().signal) =>
    panels.storeElementFile(
      {
        context: {
          principal: { workspaceId: 'ws_1' as WorkspaceId, userId, pageAccess: 'interact' },
        } as AuditContext,
        notebookId: 'nb_1',
        signal,
      },
      NO_CONTENT,
    );
  return { begun, search, storing, store };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));
const SEARCHES = 150;

test('two of many searches of a member are carried out at once, and searches of another workspace begin before waiting searches', async () => {
  const { begun, search } = panelsOverHeldFiles();
  const outcomes = Array.from({ length: SEARCHES }, () =>
    search('ws_busy', 'eve').then(
      () => 'found',
      (error: unknown) => Object(error).code,
    ),
  );
  await settled();
  assert.equal(begun.length, 2);
  const other = search('ws_other', 'ada');
  await settled();
  assert.deepEqual(
    begun.map(({ workspaceId }) => workspaceId),
    ['ws_busy', 'ws_busy', 'ws_other'],
  );
  for (let next = begun.shift(); next !== undefined; next = begun.shift()) {
    next.finish();
    await settled();
  }
  await other;
  const ended = await Promise.all(outcomes);
  assert.equal(ended.filter((outcome) => outcome === 'found').length, 2 + 32);
  assert.equal(ended.filter((outcome) => outcome === 'unavailable').length, SEARCHES - 34);
});

test('a member with many waiting searches delays another member of the workspace only by searches that have begun', async () => {
  const { begun, search } = panelsOverHeldFiles();
  const busy = Array.from({ length: 20 }, () => search('ws_1', 'eve'));
  const other = search('ws_1', 'ada');
  let isAnswered = false;
  void other.then(() => {
    isAnswered = true;
  });
  await settled();
  let finished = 0;
  for (; !isAnswered; finished++) {
    const next = begun.shift();
    assert.ok(next, 'a search is under way while the other member waits');
    next.finish();
    await settled();
  }
  assert.ok(finished <= 4, `${finished} searches ended before`);
  for (let next = begun.shift(); next !== undefined; next = begun.shift()) {
    next.finish();
    await settled();
  }
  await Promise.all(busy);
});

test('a waiting search is given up when its page leaves, and its place is free at once', async () => {
  const { begun, search } = panelsOverHeldFiles();
  const pages = Array.from({ length: 32 }, () => new AbortController());
  const outcome = (searching: Promise<unknown>) =>
    searching.then(
      () => 'found',
      ({ name, code }) => (name === 'AbortError' ? 'left' : code),
    );
  const [eves, adas] = [0, 0].map(() => [outcome(search('ws_1', 'eve')), outcome(search('ws_1', 'ada'))]);
  const gone = pages.map(({ signal }) => outcome(search('ws_1', 'eve', signal)));
  await settled();
  assert.equal(await outcome(search('ws_1', 'eve')), 'unavailable');
  for (const page of pages) page.abort();
  assert.deepEqual(new Set(await Promise.all(gone)), new Set(['left']));
  const stays = outcome(search('ws_1', 'eve'));
  let searched = 0;
  for (; begun.length > 0; searched++) {
    begun.shift()!.finish();
    await settled();
  }
  assert.deepEqual(await Promise.all([...eves!, ...adas!, stays]), Array(5).fill('found'));
  assert.equal(searched, 5);
});

test('five element files of a member are stored at once, fifteen wait, one more is refused, and another member does not wait', async () => {
  const { storing, store } = panelsOverHeldFiles();
  const files = Array.from({ length: 20 }, () => store('eve'));
  await assert.rejects(store('eve'), { code: 'unavailable' });
  const other = store('ada');
  await settled();
  assert.equal(storing.length, 5 + 1);
  for (let next = storing.shift(); next !== undefined; next = storing.shift()) {
    next();
    await settled();
  }
  assert.equal((await Promise.all([...files, other])).length, 21);
});
