import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import type { RequestCosts } from '../clients/requests.ts';
import { atLeast, atMost, type Measure, median } from '../measure.ts';
import type { Scenario } from '../scenario.ts';
import { TOKEN, WORKSPACE } from '../seed.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const PYTHON = join(ROOT, '.setup/python-client/venv/bin/python');
const REQUESTS = fileURLToPath(new URL('../clients/requests.js', import.meta.url));
const CELLS = 100;

/** The figures of decoding.py. */
interface DecodingCosts {
  readonly bytes: number;
  readonly client: readonly number[];
  readonly pydantic: readonly number[];
  readonly json: readonly number[];
  readonly skipped: readonly number[];
  readonly texts: readonly number[];
}

/** The processor time that the clients take in their programs. */
export const clients: Scenario = {
  name: 'clients',
  title: `A request of both clients, compared with \`fetch\` and httpx2 alone, and a run of ${CELLS} cells decoded by the Python client, compared with pydantic`,
  limitS: 400, // the first call installs packages
  async run(stage) {
    await setUpPython();
    const { api } = await stage.server();
    const codes = Array.from({ length: CELLS }, (_, i) =>
      i === 0 ? 'x0 = 0' : `x${i} = x${i - 1} + 1\nprint(x${i})\nx${i}`,
    );
    const { id } = await api.session(codes);
    const path = `/api/v3/notebook-sessions/${id}/executions?wait=60`;
    const run = await api.call<{ readonly status: string }>('POST', path, { type: 'all' });
    if (run.status !== 'completed') throw new Error(`The run is ${run.status}.`);
    const small = await api.notebook(['x = 1', 'x + 1']);

    const folder = temporaryFolder('clients');
    stage.after(() => folder.remove());
    const [document, stored] = ['openapi.json', 'run.json'].map((name) => join(folder.path, name)) as [
      string,
      string,
    ];
    writeFileSync(document, JSON.stringify(await api.call('GET', '/api/v3/openapi.json')));
    writeFileSync(stored, JSON.stringify(run));
    const rounds = String(stage.count(15, 3));
    const request = [`http://127.0.0.1:${api.endpoint.port}`, TOKEN, WORKSPACE, small, rounds];
    const typescript = await output<RequestCosts>(process.execPath, [REQUESTS, ...request]);
    const python = await output<RequestCosts>(PYTHON, [join(ROOT, 'bench/clients/requests.py'), ...request]);
    const decoding = await output<DecodingCosts>(PYTHON, [
      join(ROOT, 'bench/clients/decoding.py'),
      document,
      stored,
      rounds,
    ]);
    return [
      ...requestMeasures('TypeScript', 'fetch', typescript),
      ...requestMeasures('Python', 'httpx2', python),
      atMost('run, its size', decoding.bytes / 1024, 'KiB'),
      atMost('run, decoded by the client', median(decoding.client), 'µs'),
      atMost('run, decoded by pydantic', median(decoding.pydantic), 'µs'),
      atLeast('run, pydantic to the client', ratio(decoding.pydantic, decoding.client), '×', 20),
      atMost('run, decoded by `json` without models', median(decoding.json), 'µs'),
      atMost('run, read by msgspec without making anything of it', median(decoding.skipped), 'µs'),
      atMost('run, only its texts decoded by msgspec', median(decoding.texts), 'µs'),
    ];
  },
};

function requestMeasures(language: string, library: string, { raw, client }: RequestCosts): Measure[] {
  return [
    atMost(`${language}, CPU of a request by ${library}`, median(raw), 'µs'),
    atMost(`${language}, CPU of a request by the client`, median(client), 'µs'),
    atMost(`${language}, client to ${library}`, ratio(client, raw), '×', 1.15),
  ];
}

/** Returns the median of the ratios of the rounds. */
function ratio(of: readonly number[], to: readonly number[]): number {
  return median(of.map((cost, round) => cost / to[round]!));
}

/** Resolves with the JSON that a program prints. */
async function output<T>(command: string, args: readonly string[]): Promise<T> {
  const clientPython = join(ROOT, 'src/contract/client-python');
  const env = { ...process.env, PYTHONPATH: `${clientPython}:${join(clientPython, 'scripts')}` };
  const { stdout } = await promisify(execFile)(command, [...args], { env });
  return JSON.parse(stdout) as T;
}

/** Installs the packages with which the tests check the Python client, unless they are there. */
async function setUpPython(): Promise<void> {
  const load = (name: string) => import(pathToFileURL(join(ROOT, 'src/setup', name)).href);
  const { setUp, ROOT: root } = (await load('setup.mjs')) as {
    readonly ROOT: string;
    setUp(root: string, further: readonly unknown[]): Promise<void>;
  };
  await setUp(root, [await load('python-client.mjs')]);
}
