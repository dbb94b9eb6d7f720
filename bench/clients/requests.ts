/**
 * Reads a notebook by `fetch` and by the client in turn, and prints the processor time of a request of each as JSON: a process of its
 * own, so that nothing else is counted. Arguments: the address, the token, the workspace, the notebook, and the number of rounds.
 */
import { Troupe } from '#src/contract/client/troupe.ts';

/** The microseconds of processor time that a request takes, one for each round. */
export interface RequestCosts {
  readonly raw: readonly number[];
  readonly client: readonly number[];
}

/** The two take turns in blocks, so that a busy moment of the machine and its garbage are shared evenly. */
const PER_BLOCK = 20;
const BLOCKS = 50;

const [, , baseUrl = '', accessToken = '', workspaceId = '', notebookId = '', rounds = ''] = process.argv;
const troupe = new Troupe({ baseUrl, accessToken, workspaceId });
const headers = { authorization: `Bearer ${accessToken}`, 'service-workspace-id': workspaceId };
const url = `${baseUrl}/api/v3/notebooks/${notebookId}`;

const raw = async () => (await fetch(url, { headers })).json();
const client = () => troupe.notebooks.get(notebookId);

/** Resolves with the microseconds of processor time that a block of requests takes. */
async function costOf(request: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  for (let i = 0; i < PER_BLOCK; i++) await request();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

async function round(): Promise<{ readonly raw: number; readonly client: number }> {
  let [rawUs, clientUs] = [0, 0];
  for (let block = 0; block < BLOCKS; block++) {
    rawUs += await costOf(raw);
    clientUs += await costOf(client);
  }
  return { raw: rawUs / (PER_BLOCK * BLOCKS), client: clientUs / (PER_BLOCK * BLOCKS) };
}

for (let warmUp = 0; warmUp < 3; warmUp++) await round();
const costs: { raw: number; client: number }[] = [];
for (let i = 0; i < Number(rounds); i++) costs.push(await round());
process.stdout.write(
  JSON.stringify({
    raw: costs.map((one) => one.raw),
    client: costs.map((one) => one.client),
  } satisfies RequestCosts),
);
