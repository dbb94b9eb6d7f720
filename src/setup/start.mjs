// `npm start` and `troupe serve`: runs the set-up, then the server, in this process, so that signals reach the server.

import { reporting, SetupError } from './console.mjs';
import { unloadable } from './node-packages.mjs';
import { setUp } from './setup.mjs';
import { requireAddon } from './uwebsockets.mjs';

// Without a listener Node.js would open a debugger on SIGUSR1. The server closes a debugger that
// was opened before this line.
process.on('SIGUSR1', () => {});
await reporting(() => requireAddon());
await reporting(setUp);
await reporting(async () => {
  try {
    await import('../../dist/server/main.js');
  } catch (error) {
    const text = String(error?.stack ?? error);
    const [, name] = /node_modules\/(lmdb)\//.exec(text) ?? [];
    // The packages were installed on another machine, or the machine's libraries have changed
    // since.
    if (name !== undefined) throw new SetupError(unloadable(name, text));
    throw error;
  }
});
