// Imported into the process of each test file. Appends the seconds that the file took to the file that TROUPE_TEST_TIMES names, from
// which `npm test` prints the slowest files at its end.
import { appendFileSync } from 'node:fs';

const times = process.env.TROUPE_TEST_TIMES;
if (times)
  process.once('exit', () => appendFileSync(times, `${process.uptime().toFixed(1)} ${process.argv[1]}\n`));
