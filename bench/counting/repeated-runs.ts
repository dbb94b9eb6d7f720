import { MARK } from '../api.ts';
import type { Feed } from '../feed.ts';
import { expected, type Wire } from '../wire.ts';

/** Sends the request for a run `count` times, each when the run before has completed. `feed` follows the session. */
export async function repeatRuns(feed: Feed, wire: Wire, request: Buffer, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const completed = feed.until(MARK.completed);
    expected(await wire.send(request), 202);
    await completed;
  }
}
