// `npm run bench`: set-up, then the measurements, in this one process.
import { reporting } from './say.mjs';
import { setUp } from './setup.mjs';

await reporting(setUp);
process.setSourceMapsEnabled(true);
await import('../../dist/bench/main.js');
