import assert from 'node:assert/strict';
import { OWNER, type TestServer } from './server-fixture.ts';

/** Reads the metrics as a scraper would, by name and labels. Those of several workers are added up. */
export async function scrape(
  { baseUrl }: Pick<TestServer, 'baseUrl'>,
  token = OWNER.token,
): Promise<ReadonlyMap<string, number>> {
  const response = await fetch(`${baseUrl}/metrics`, { headers: { authorization: `Bearer ${token}` } });
  assert.equal(response.status, 200);
  assert.match(response.headers.get('content-type') ?? '', /^application\/openmetrics-text; version=1\.0\.0/);
  const text = await response.text();
  assert.ok(text.endsWith('# EOF\n'));
  const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const sums = new Map<string, number>();
  for (const line of samples) {
    const space = line.lastIndexOf(' ');
    const series = line
      .slice(0, space)
      .replace(/worker="\d+",?/, '')
      .replace('{}', '');
    sums.set(series, (sums.get(series) ?? 0) + Number(line.slice(space + 1)));
  }
  return sums;
}
