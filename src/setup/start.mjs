// `npm start`: set-up, then the server, in this one process, so that a signal to it reaches the server.
import { unloadable } from './node-packages.mjs';
import { reporting, SetupError } from './say.mjs';
import { setUp } from './setup.mjs';

await reporting(setUp);
process.setSourceMapsEnabled(true);
await reporting(async () => {
  try {
    await import('../../dist/server/main.js');
  } catch (error) {
    const text = String(error?.stack ?? error);
    const [, name] = /node_modules\/(lmdb|uWebSockets\.js)\//.exec(text) ?? [];
    // The packages were set up for another machine, or its libraries have changed since.
    if (name !== undefined) throw new SetupError(unloadable(name, text));
    throw error;
  }
});
