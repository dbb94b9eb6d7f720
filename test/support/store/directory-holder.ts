/** Claims the data directory in its argument, prints a line, and holds the claim until it is killed. */
import { DataDirectory } from '#storage/disk/data-directory.ts';

await DataDirectory.claim(process.argv[2]!);
process.stdout.write('claimed\n');
setInterval(() => undefined, 60_000);
