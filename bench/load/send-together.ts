import type { Api } from '../api.ts';
import { expected } from '../wire.ts';

/** The number of connections for a number of requests. */
const CONNECTIONS = 16;

/** Sends a request `count` times, on several connections. Rejects when a status differs. */
export async function sendTogether(api: Api, request: Buffer, count: number, status: number): Promise<void> {
  let left = count;
  const send = async () => {
    const wire = await api.wire();
    while (left-- > 0) expected(await wire.send(request), status);
    wire.close();
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, send));
}
