/**
 * `npm run fuzz [-- --cases N] [-- --seed S]`: schemathesis, in a Python environment of its own, against a server of its
 * own. Fails on a 500, on an answer outside of the OpenAPI document, and on anything that the server logs as an error.
 */
import { spawn, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';

const FOLDER = join(import.meta.dirname, '../../../test/fuzz');
const VENV = join(import.meta.dirname, '../../../.setup/fuzz');
const CHECKS = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
  'response_schema_conformance',
];

const { values } = parseArgs({
  options: {
    cases: { type: 'string', default: '5000' },
    seed: { type: 'string', default: String(randomInt(2 ** 31)) },
  },
});
const cleanUps: (() => Promise<void>)[] = [];
let failed = false;
try {
  installSchemathesis();
  const owner = { after: (cleanUp: () => Promise<void>) => cleanUps.unshift(cleanUp) };
  failed = await fuzz(owner, Number(values.cases), values.seed);
} finally {
  for (const cleanUp of cleanUps)
    await cleanUp().catch((error: unknown) => {
      failed = true;
      say(String(error)); // what the server has logged
    });
}
process.exitCode = failed ? 1 : 0;

function installSchemathesis(): void {
  const requirements = join(FOLDER, 'requirements.txt');
  const stamp = join(VENV, 'requirements');
  const wanted = readFileSync(requirements, 'utf8');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  say('installing schemathesis');
  run('python3', ['-m', 'venv', '--clear', VENV]);
  run(join(VENV, 'bin/python'), ['-m', 'pip', 'install', '--quiet', '--requirement', requirements]);
  writeFileSync(stamp, wanted);
}

function run(command: string, args: readonly string[]): void {
  const { status, error } = spawnSync(command, args, { stdio: 'inherit' });
  if (status !== 0)
    throw new Error(`${command} ${args.join(' ')} failed${error ? `: ${error.message}` : ''}`);
}

async function fuzz(owner: Parameters<typeof startServer>[0], cases: number, seed: string): Promise<boolean> {
  const server = await startServer(owner, {
    TROUPE_EGRESS_ALLOW: 'none',
    TROUPE_MAX_SESSIONS: '5',
    TROUPE_KERNEL_CONFINEMENT: 'auto',
  });
  const notebook = await openNotebook(server, { a: '1' });
  const { id: runId } = await notebook.run(['a']);
  const document = (await (await fetch(`${server.baseUrl}/api/v3/openapi.json`)).json()) as {
    paths: Record<string, object>;
  };
  const operations = Object.values(document.paths).flatMap((methods) => Object.keys(methods)).length;
  say(`about ${cases} cases for ${operations} operations, seed ${seed}`);
  const child = spawn(
    join(VENV, 'bin/schemathesis'),
    [
      ...['run', `${server.baseUrl}/api/v3/openapi.json`, '--url', server.baseUrl],
      ...['--header', `Authorization: Bearer ${OWNER.token}`],
      ...['--header', `Service-Workspace-Id: ${OWNER.workspaceId}`],
      ...['--checks', CHECKS.join(','), '--phases', 'examples,coverage,fuzzing', '--seed', seed],
      ...['--max-examples', String(Math.max(1, Math.round(cases / operations)))],
      ...['--exclude-path-regex', '/events$', '--continue-on-failure', '--suppress-health-check', 'all'],
      ...['--warnings', 'off', '--request-timeout', '10'],
    ],
    {
      stdio: 'inherit',
      env: {
        PATH: process.env.PATH ?? '',
        HOME: process.env.HOME ?? '',
        PYTHONPATH: FOLDER,
        SCHEMATHESIS_HOOKS: 'schemathesis_hooks',
        // Things that are there, so that not everything is 404.
        FUZZ_IDS: JSON.stringify({
          notebookId: notebook.id,
          sessionId: notebook.id,
          'Service-Session-Id': notebook.id,
          environmentId: notebook.environmentId,
          runId,
        }),
      },
    },
  );
  const [code] = (await once(child, 'exit')) as [number | null];
  return code !== 0;
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
