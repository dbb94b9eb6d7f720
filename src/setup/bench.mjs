// `npm run bench`: runs the set-up, then the measurements, in this process.
import { reporting } from './console.mjs';
import { setUp } from './setup.mjs';

await reporting(setUp);
process.setSourceMapsEnabled(true);
await import('../../dist/bench/main.js');
