/** Starts a Ray cluster of one machine on this one. Ray comes from the virtual environment in `TROUPE_TEST_RAY`, which `.ci/run` makes. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { bounded, descendants, eventually, gone, processFact } from './processes.ts';
import { removeAfter } from './remove-folder.ts';
import { type Owner, pythonOfTests } from './server-fixture.ts';
import { freePort } from './stand-ins/reverse-proxies.ts';

const ENVIRONMENT = process.env.TROUPE_TEST_RAY ?? '';
const PROGRAM = join(ENVIRONMENT, 'bin/ray');

/** Why there can be no cluster; false when there can. */
export const noRay: string | false =
  ENVIRONMENT !== '' && existsSync(PROGRAM) ? false : 'Ray is not installed (TROUPE_TEST_RAY)';

export interface RayCluster {
  readonly url: string;
  readonly tokenFile: string;
  /** The process above all others of the cluster. */
  readonly pid: number;
  /** Returns the state of each job, in Ray's words, by its id. */
  statuses(): Promise<ReadonlyMap<string, string>>;
}

/** Resolves once the Jobs API answers. The machine offers `troupe_host` once. Everything ends with the owner. */
export async function startRayCluster(owner: Owner): Promise<RayCluster> {
  const folder = mkdtempSync(join(tmpdir(), 'ray-')); // a short path, because Ray puts unix sockets below it
  removeAfter(owner, folder);
  const tokenFile = join(folder, 'token');
  const token = randomBytes(32).toString('base64url');
  writeFileSync(tokenFile, token, { mode: 0o600 });
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  symlinkSync(resolve('src/setup/troupe.mjs'), join(bin, 'troupe'));
  const [port, dashboardPort, agentPort] = await Promise.all([freePort(), freePort(), freePort()]);
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(
    PROGRAM,
    [
      ...['start', '--head', '--block', '--disable-usage-stats', '--include-dashboard', 'true'],
      ...['--node-ip-address', '127.0.0.1', '--port', String(port), '--temp-dir', join(folder, 'r')],
      ...['--dashboard-host', '127.0.0.1', '--dashboard-port', String(dashboardPort)],
      // The default of this port is fixed, and another cluster of this machine may have it.
      ...['--dashboard-agent-listen-port', String(agentPort)],
      ...['--num-cpus', '1', '--resources', '{"troupe_host": 1}', '--object-store-memory', '80000000'],
    ],
    {
      cwd: folder,
      env: {
        PATH: `${bin}:${PATH}`,
        HOME,
        RAY_AUTH_MODE: 'token',
        RAY_AUTH_TOKEN_PATH: tokenFile,
        TROUPE_NODE_DIR: join(folder, 'node'),
        TROUPE_PRELOAD: 'false',
        ...pythonOfTests(),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  const printed: string[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => printed.push(String(data)));
  owner.after(async () => {
    const all = [processFact(child.pid!), ...descendants(child.pid!)].filter((fact) => fact !== undefined);
    // On SIGTERM Ray ends its processes one after the other, which takes longer than the test.
    for (const { pid } of all)
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It has ended with another one.
      }
    await bounded('Ray has ended', gone(all), () => printed.join(''));
  });
  const url = `http://127.0.0.1:${dashboardPort}`;
  await eventually(
    'the Jobs API answers',
    async () => {
      if (child.exitCode !== null) throw new Error(`Ray has ended: ${printed.join('')}`);
      const headers = { authorization: `Bearer ${token}` };
      return fetch(`${url}/api/version`, { headers }).then(
        ({ ok }) => ok,
        () => false,
      );
    },
    120_000,
  );
  return {
    url,
    tokenFile,
    pid: child.pid!,
    async statuses() {
      const response = await fetch(`${url}/api/jobs/`, { headers: { authorization: `Bearer ${token}` } });
      const jobs = (await response.json()) as readonly { submission_id: string; status: string }[];
      return new Map(jobs.map((job) => [job.submission_id, job.status]));
    },
  };
}
