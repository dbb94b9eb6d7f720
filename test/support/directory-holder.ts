/** Claims the data directory that is its argument, says so, and holds it until it is killed. */
import { DataDirectory } from '#storage/data-directory.ts';

await DataDirectory.claim(process.argv[2]!);
process.stdout.write('claimed\n');
setInterval(() => undefined, 60_000);
