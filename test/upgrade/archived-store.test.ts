// tier: whole, because it packs, installs and starts a package
// runs alone: it starts many processes, which keep both processors busy
import test from 'node:test';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';
import { openArchivedStore } from './archived-store.ts';

test('the server of this checkout serves every object of a store that a packed server has written', (t) =>
  openArchivedStore(t, {
    folder: temporaryDirectory(t),
    archive: undefined,
    say: (line) => t.diagnostic(line),
  }));
