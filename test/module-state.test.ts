/**
 * State of modules, which all apps of one process share: the warm-up's second app, and the servers of tests. State belongs to an object
 * that an app makes, unless it is of the process itself or only remembers results. A new one is refused until its comment says why, and
 * its name is here.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { PACKAGE_ROOT } from '#src/base/install/package-root.ts';

/** State of modules by the reason why it is of the process. A program of `src/faces/` is the only one of its process or page. */
const OF_THE_PROCESS: Readonly<Record<string, readonly string[]>> = {
  'the process has one event loop': [
    'src/base/async/slices.ts isScheduled',
    'src/base/async/slices.ts waiting',
    'src/runtime/events/subscriber.ts roomOfAll',
  ],
  'ids of one process are different and increase': [
    'src/base/ids.ts lastMs',
    'src/base/ids.ts randomUsed',
    'src/base/ids.ts tail',
    'src/http/edge/request-head.ts firstDigits',
    'src/http/edge/request-head.ts requestCount',
  ],
  'a thing of the system, of which a process has one': [
    'src/base/async/any-signal.ts combined',
    'src/base/async/unawaited.ts listeners',
    'src/base/install/source-places.ts maps',
    'src/base/metrics/process-memory.ts latest',
    'src/base/os/listening-socket.ts loaded',
    'src/base/os/service-notice.ts path',
    'src/base/os/service-notice.ts sending',
    'storage/record-memory.ts reserved',
  ],
  'connections and clients of vendors, by all that distinguishes them': [
    'src/agent/models/model-wire.ts shared',
    'src/agent/models/providers.ts models',
    'src/agent/models/providers.ts sends',
  ],
  'a remembered result that depends on nothing but its key': [
    'src/agent/streamed-entries.ts streamed',
    'src/base/json/json-write.ts preparedJson',
    'src/base/json/json-write.ts preparedObjects',
    'src/base/json/prepared-strings.ts prepared',
    'src/base/json/schema-check.ts validators',
    'src/base/text/checksum.ts known',
    'src/base/time/clock.ts lastMs',
    'src/base/time/clock.ts lastText',
    'src/datasource/query/placeholders.ts openings',
    'src/http/reply/write-reply.ts preparedBlocks',
    'src/notebook/open/streamed-outputs.ts known',
    'src/notebook/saved/cells-json.ts blocks',
    'src/notebook/saved/cells-json.ts known',
    'src/notebook/saved/cells-json.ts longCodes',
    'src/notebook/saved/cells-json.ts prepared',
    'src/notebook/sessions/notebook-session-record.ts statuses',
    'src/runtime/actors/state-path.ts known',
    'src/runtime/runs/output-content.ts arrived',
    'src/runtime/runs/output-content.ts prepared',
  ],
  'scratch space that is used up within one call': [
    'src/agent/models/delta-tap.ts BOUNDARY',
    'src/datasource/query/placeholders.ts COMMENT_MARK',
    'src/datasource/query/placeholders.ts CONTINUED',
    'src/http/reply/entity-tag.ts ELEMENT',
    'src/http/reply/event-stream.ts corked',
    'storage/codec.ts encoder',
  ],
  'a table that is complete once its module is loaded': [
    'src/contract/wire/patterns.ts WORDS',
    'src/datasource/connectors/postgres/json.ts NUMERIC',
    'src/datasource/connectors/postgres/json.ts PLAIN',
  ],
};

const FOLDERS = ['src', 'machines', 'storage'];
const FACES = /^src\/faces\//;
const DECLARED = /^(?:export )?(let|const) (\w+)\b([^;]*)/gm;
/** A collection that is empty at first. */
const EMPTY = /= (?:\[\]|new (?:Weak)?(?:Map|Set)(?:<.*>)?\(\))$/;

/** Returns the variables of a module that change after it was loaded, or whose object does. */
function stateIn(source: string): string[] {
  return [...source.matchAll(DECLARED)].flatMap(([, kind, name, rest]) => {
    const changed = new RegExp(
      `(?<![\\w.#])${name}(?:\\.(?:set|add|delete|clear|push|pop|shift|unshift|splice|fill)\\(|(?:\\[[^\\]]+\\]!?|\\.\\w+)\\s*(?:[-+*/&|?]{0,2}=(?![=>])|\\+\\+|--))`,
    );
    return kind === 'let' || EMPTY.test(rest!) || changed.test(source) ? [name!] : [];
  });
}

test('each state of a module is listed with the reason why it belongs to the whole process', () => {
  const files = FOLDERS.flatMap((folder) =>
    readdirSync(join(PACKAGE_ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .map((file) => `${folder}/${file}`),
  ).filter((file) => !FACES.test(file));
  assert.ok(files.length > 700);
  const found = files.flatMap((file) =>
    stateIn(readFileSync(join(PACKAGE_ROOT, file), 'utf8')).map((name) => `${file} ${name}`),
  );
  assert.deepEqual(found.sort(), Object.values(OF_THE_PROCESS).flat().sort());
});

test('changing variables, collections and members of a module are found as its state', () => {
  const source = `
let count = 0;
const names: string[] = [];
export const byName = new Map<string, number>();
const table = [1, 2];
const place = { at: 0 };
const LIMIT = 3;
function move(): void {
  const inner = new Set();
  inner.add(1);
  table[0] = 2;
  place.at += LIMIT;
}`;
  assert.deepEqual(stateIn(source), ['count', 'names', 'byName', 'table', 'place']);
});
