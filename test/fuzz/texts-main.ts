/**
 * `npm run fuzz:texts` sends bad texts to a server of its own: each kind of `bad-texts.ts` in each place of `text-places.ts`. It prints the
 * longest times for which the event loop did nothing else, in processor time of its thread, and fails when a time is above the limit, on a
 * status of 500, on a request without an answer, and on an error in the server's log.
 */
import { randomInt } from 'node:crypto';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { scriptOptions } from '#test/support/script-options.ts';
import type { Owner } from '#test/support/server-fixture.ts';
import { fuzzTexts, type TextReport } from './text-fuzz.ts';

const USAGE = `npm run fuzz:texts -- [options]: sends bad texts to a server of its own

  --minutes <n>   the longest time (default 60)
  --seed <n>      the order of the requests (default: a random one, which is printed)
  --only <text>   only places whose name, such as "createNotebook body.title", has this text
  --kind <text>   only kinds of texts whose name has this text
  --limit <ms>    the longest block that passes (default 50)`;
const SHOWN = 20;

const values = scriptOptions(USAGE, {
  minutes: { type: 'string', default: '60' },
  seed: { type: 'string', default: String(randomInt(2 ** 31)) },
  only: { type: 'string', default: '' },
  kind: { type: 'string', default: '' },
  limit: { type: 'string', default: '50' },
});
const limitMs = Number(values.limit);
const cleanUps: (() => Promise<void>)[] = [];
const owner: Owner = { after: (cleanUp) => cleanUps.unshift(cleanUp) };
const folder = mkdtempSync(join(tmpdir(), 'troupe-texts-'));
let isGood = true;
try {
  say(`seed ${values.seed}`);
  const report = await fuzzTexts(owner, {
    seed: Number(values.seed),
    forMs: Number(values.minutes) * 60_000,
    only: values.only,
    kind: values.kind,
    say,
  });
  isGood = show(report);
  writeFileSync(join(folder, 'report.json'), JSON.stringify(report, undefined, 1));
  say(`the report is in ${folder}`);
} finally {
  for (const cleanUp of cleanUps)
    await cleanUp().catch((error: unknown) => {
      isGood = false;
      say(String(error)); // the errors that the server has logged
    });
}
process.exit(isGood ? 0 : 1);

/** Prints a report. Returns whether it is good. */
function show({ requests, tried, possible, statuses, worst, spurious, problems }: TextReport): boolean {
  say(`${tried} of ${possible} different requests, ${requests} with repetitions`);
  say(
    `statuses: ${Object.entries(statuses)
      .map(([status, count]) => `${status}: ${count}`)
      .join(', ')}`,
  );
  say(
    `blocks above the limit that came once and not again with the same request: ${spurious.join(', ') || 'none'} (ms)`,
  );
  say('| place | kind | characters | status | ms |\n| --- | --- | --- | --- | --- |');
  for (const { place, kind, chars, status, ms } of worst.slice(0, SHOWN))
    say(`| ${place} | ${kind} | ${chars.toLocaleString('en')} | ${status} | ${ms.toFixed(1)} |`);
  for (const problem of problems) say(`WRONG: ${problem}`);
  return problems.length === 0 && (worst[0]?.ms ?? 0) <= limitMs;
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
