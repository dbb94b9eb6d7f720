/**
 * `npm run fuzz [-- --cases N] [-- --minutes M] [-- --seed S]` runs schemathesis, from a separate Python environment,
 * against a server of its own, in rounds until N cases (5,000) have run or M minutes (90) have passed. It fails on a
 * status of 500, on a response that the OpenAPI document does not allow, on an error in the server's log, and when fewer
 * than N cases have run.
 */
import { spawn, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { OWNER, type Owner, startServer, type TestServer } from '#test/support/server-fixture.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';

const FOLDER = join(import.meta.dirname, '../../../test/fuzz');
const VENV = join(import.meta.dirname, '../../../.setup/fuzz');
const CHECKS = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
  'response_schema_conformance',
];
/** no output breaks the code that shows it, or sends anything but text and colours to a terminal */
const ROUND_CASES = 20_000;

/** The counts of the hooks. */
interface Report {
  readonly cases: number;
  readonly failed: number;
  readonly statuses: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

const { values } = parseArgs({
  options: {
    cases: { type: 'string', default: '5000' },
    minutes: { type: 'string', default: '90' },
    seed: { type: 'string', default: String(randomInt(2 ** 31)) },
    help: { type: 'boolean', short: 'h', default: false },
  },
});
if (values.help) {
  process.stdout.write(`npm run fuzz -- [options]: sends generated requests to a server of its own

  --cases <n>    how many requests (default 5000)
  --minutes <n>  the longest time (default 90)
  --seed <n>     the first seed, to repeat a run (default: a random one, which is printed)
`);
  process.exit();
}
const wanted = Number(values.cases);
const endsAt = Date.now() + Number(values.minutes) * 60_000;
installSchemathesis();
const rounds: Report[] = [];
const ran = () => rounds.reduce((sum, { cases }) => sum + cases, 0);
let isGood = true;
for (let seed = Number(values.seed); ran() < wanted && Date.now() < endsAt; seed++)
  isGood = (await round(Math.min(wanted - ran(), ROUND_CASES), seed)) && isGood;
const failed = rounds.reduce((sum, report) => sum + report.failed, 0);
summarize();
say(`${ran()} cases, ${failed} of them failed${isGood ? '' : '; a round failed, see above'}`);
process.exitCode = isGood && failed === 0 && ran() >= wanted ? 0 : 1;

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

/** Returns whether neither schemathesis nor the server found anything wrong in a round with a new server. */
async function round(cases: number, seed: number): Promise<boolean> {
  const cleanUps: (() => Promise<void>)[] = [];
  let isContent = false;
  try {
    const owner: Owner = { after: (cleanUp) => cleanUps.unshift(cleanUp) };
    const model = await startScriptedModel(owner);
    for (let count = 0; count < cases; count++) model.script((exchange) => exchange.text('Yes.').end());
    const server = await startServer(owner, {
      TROUPE_EGRESS_ALLOW: 'none',
      TROUPE_WORKSPACE_MAX_SESSIONS: '5',
      TROUPE_OPENAI_COMPATIBLE_URL: model.url,
      TROUPE_DEFAULT_MODEL: 'openai-compatible/scripted',
    });
    isContent = await attack(server, cases, seed);
  } finally {
    for (const cleanUp of cleanUps)
      await cleanUp().catch((error: unknown) => {
        isContent = false;
        say(String(error)); // the errors that the server has logged
      });
  }
  return isContent;
}

async function attack(server: TestServer, cases: number, seed: number): Promise<boolean> {
  const { items: tokens } = await server.client.accessTokens.list();
  const spared = [OWNER.workspaceId, ...tokens.flatMap(({ id, userId }) => [id, userId])];
  const first = await inhabit(server);
  const operations = await countOperations(server);
  say(`a round of about ${cases} cases for ${operations} operations, seed ${seed}`);
  const reportFile = join(server.dataDir, 'fuzz-report.json');
  const child = spawn(
    join(VENV, 'bin/schemathesis'),
    [
      ...['run', `${server.baseUrl}/api/v3/openapi.json`, '--url', server.baseUrl],
      ...['--header', `Authorization: Bearer ${OWNER.token}`],
      ...['--header', `Service-Workspace-Id: ${OWNER.workspaceId}`],
      ...['--checks', CHECKS.join(','), '--phases', 'examples,coverage,fuzzing', '--seed', String(seed)],
      ...['--max-examples', String(Math.max(1, Math.round(cases / operations)))],
      ...['--exclude-path-regex', '/events$', '--continue-on-failure', '--suppress-health-check', 'all'],
      ...['--warnings', 'off', '--request-timeout', '10'],
    ],
    {
      cwd: server.dataDir, // schemathesis stores its examples there
      stdio: 'inherit',
      env: {
        PATH: process.env.PATH ?? '',
        HOME: process.env.HOME ?? '',
        PYTHONPATH: FOLDER,
        SCHEMATHESIS_HOOKS: 'schemathesis_hooks',
        FUZZ_SPARED: spared.join(' '),
        FUZZ_FIRST: JSON.stringify(first),
        FUZZ_REPORT: reportFile,
      },
    },
  );
  const tooLate = setTimeout(() => child.kill('SIGINT'), endsAt - Date.now());
  const [code] = (await once(child, 'exit')) as [number | null];
  clearTimeout(tooLate);
  if (!existsSync(reportFile)) throw new Error(`schemathesis broke down: exit code ${code}`);
  const report = JSON.parse(readFileSync(reportFile, 'utf8')) as Report;
  rounds.push(report);
  const wasCutOff = Date.now() >= endsAt;
  return wasCutOff ? report.failed === 0 : code === 0;
}

/** Creates one resource of each kind. Returns their ids by the names of kinds that the hooks use. */
async function inhabit(server: TestServer): Promise<Record<string, readonly string[]>> {
  const { client } = server;
  const notebook = await openNotebook(server, { a: '1', b: 'print("x" * 100_000)\n"x" * 100_000' });
  const run = await notebook.run([]);
  const assets = run.output?.parts.flatMap((part) => (part.type === 'asset' ? [part.assetId] : [])) ?? [];
  await client.members.create({ userId: 'guest', role: 'viewer' });
  await client.datasources.create({
    slug: 'kept',
    connection: { kind: 'sqlite', path: 'kept.sqlite' },
  });
  const { environmentId } = await client.executionEnvironments.create();
  const { sessionId: conversation } = await client.agentSessions.open({ environmentId });
  return {
    nb: [notebook.id],
    session: [notebook.id],
    env: [notebook.environmentId, environmentId],
    run: [run.id],
    asset: assets,
    conv: [conversation],
    slug: ['kept'],
    user: ['guest', 'nobody'],
    cell: ['a', 'b'],
  };
}

async function countOperations({ baseUrl }: TestServer): Promise<number> {
  const document = (await (await fetch(`${baseUrl}/api/v3/openapi.json`)).json()) as {
    paths: Record<string, object>;
  };
  return Object.values(document.paths).flatMap((methods) => Object.keys(methods)).length;
}

/** Prints how often each operation returned which status: one that never succeeded was hardly tested. */
function summarize(): void {
  const sums = new Map<string, Map<string, number>>();
  for (const { statuses } of rounds)
    for (const [operation, counts] of Object.entries(statuses))
      for (const [status, count] of Object.entries(counts)) {
        const sum = sums.get(operation) ?? new Map<string, number>();
        sums.set(operation, sum.set(status, (sum.get(status) ?? 0) + count));
      }
  for (const [operation, sum] of [...sums].sort()) {
    const counts = [...sum].sort().map(([status, count]) => `${status}: ${count}`);
    say(`${operation}  ${counts.join(', ')}`);
  }
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
