/** The Jobs API of a Ray cluster, without a cluster: jobs stay in the state that a test gives them. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Owner } from '../server-fixture.ts';

export interface StandInJob {
  readonly submission_id: string;
  readonly entrypoint: string;
  readonly entrypoint_resources: Readonly<Record<string, number>>;
  readonly runtime_env: { readonly env_vars: Readonly<Record<string, string>> };
  status: string;
  message: string;
}

export interface RayStandIn {
  readonly url: string;
  readonly jobs: Map<string, StandInJob>;
  /** When it is set, each request gets this status. */
  failure: number | undefined;
}

/** Listens until the owner ends. */
export async function startRayStandIn(owner: Owner, token: string): Promise<RayStandIn> {
  const jobs = new Map<string, StandInJob>();
  const server = createServer((request, response) => {
    void answer(standIn, token, request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  owner.after(async () => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const standIn: RayStandIn = { url: `http://127.0.0.1:${port}`, jobs, failure: undefined };
  return standIn;
}

async function answer(
  { jobs, failure }: RayStandIn,
  token: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const send = (status: number, value: unknown) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
  };
  if (failure !== undefined) return send(failure, { trouble: 'a secret of the request' });
  // As Ray does: what looks like a browser is refused.
  if (Object.keys(request.headers).some((name) => name.startsWith('sec-fetch-'))) return send(403, {});
  if (request.headers.authorization !== `Bearer ${token}`) return send(401, {});
  const [, id, action] = /^\/api\/jobs\/([^/]*)\/?(stop)?$/.exec(request.url ?? '') ?? [];
  if (id === '' && request.method === 'GET') return send(200, [...jobs.values()]);
  if (id === '' && request.method === 'POST') {
    const job = JSON.parse(Buffer.concat(chunks).toString('utf8')) as StandInJob;
    jobs.set(job.submission_id, { ...job, status: 'PENDING', message: 'Job has not started yet.' });
    return send(200, { submission_id: job.submission_id });
  }
  const job = jobs.get(id ?? '');
  if (job === undefined) return send(404, {});
  if (action === 'stop') {
    if (['PENDING', 'RUNNING'].includes(job.status)) job.status = 'STOPPED';
    return send(200, { stopped: true });
  }
  if (request.method === 'DELETE') {
    jobs.delete(job.submission_id);
    return send(200, { deleted: true });
  }
  return send(200, job);
}
