/** The alert rules of `deploy/`, as Prometheus evaluates them: its rule tester, and Prometheus itself. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { TestContext } from 'node:test';
import { eventually } from './processes.ts';
import { OWNER } from './server-fixture.ts';
import { freePort, lacks } from './stand-ins/reverse-proxies.ts';
import { temporaryDirectory } from './store/temporary-store.ts';

const RULES = resolve('deploy/prometheus-alerts.yml');
const INSTANCE = 'test';
/** A time longer than every `for` of the rules. */
const WATCHED_MIN = 90;

/** Why these tests cannot run here, or false. */
export const noPrometheus = lacks('prometheus');

/** Returns the series of a server as lines of text, and `up` as a scraper adds it. */
export async function seriesOf({ baseUrl }: { readonly baseUrl: string }): Promise<string[]> {
  const response = await fetch(`${baseUrl}/metrics`, { headers: { authorization: `Bearer ${OWNER.token}` } });
  assert.equal(response.status, 200);
  return [
    'up 1',
    ...(await response.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#')),
  ];
}

/** How some series move while the rules are watched. */
interface Moves {
  /** How long the rules are watched. */
  readonly minutes?: number;
  /** The value of the series whose text matches, by the minute from which on they have it. The first one is at 0. */
  readonly of?: readonly (readonly [series: RegExp, values: Readonly<Record<number, number>>])[];
}

/** Returns the alerts that fire at the end of 90 minutes in which the series have these values, except for those that move. */
export function firingAlerts(
  t: TestContext,
  series: readonly string[],
  { minutes = WATCHED_MIN, of: moves = [] }: Moves = {},
): string[] {
  const file = join(temporaryDirectory(t), 'test.json');
  const alerts = (expected: readonly object[]) => ({
    rule_files: [RULES],
    evaluation_interval: '1m',
    tests: [
      {
        interval: '1m',
        input_series: series.map((line) => {
          const values = moves.find(([one]) => one.test(line))?.[1];
          return inputSeries(line, minutes, values);
        }),
        promql_expr_test: [
          {
            expr: 'count by (alertname) (ALERTS{alertstate="firing"})',
            eval_time: `${minutes}m`,
            exp_samples: expected,
          },
        ],
      },
    ],
  });
  writeFileSync(file, JSON.stringify(alerts([{ labels: '{alertname="none"}', value: 1 }])));
  const { stdout, stderr } = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' });
  const got = /got:([^\n]*)/.exec(stdout + stderr)?.[1];
  assert.ok(got !== undefined, stdout + stderr);
  return [...got.matchAll(/alertname="(\w+)"/g)].map(([, name = '']) => name).sort();
}

/** The clock of the rule tester begins at 0, so times are given from now on. */
function inputSeries(
  line: string,
  minutes: number,
  moves: Readonly<Record<number, number>> | undefined,
): { readonly series: string; readonly values: string } {
  const space = line.lastIndexOf(' ');
  const [name, labels = ''] = line.slice(0, space).replace('}', '').split('{');
  const isTime = /_timestamp_seconds$/.test(name ?? '');
  const value = Number(line.slice(space + 1)) - (isTime ? Date.now() / 1000 : 0);
  // A server adds increments again and again, so their time moves on with the clock.
  const perMinute = name?.includes('_last_increment_') ? 60 : 0;
  const all = [...(labels === '' ? [] : [labels]), `instance="${INSTANCE}"`, 'job="troupe"'];
  const values =
    moves === undefined ? `${value}+${perMinute}x${minutes}` : movingValues(Object.entries(moves), minutes);
  return { series: `${name}{${all.join(',')}}`, values };
}

/** Returns the values in the notation of the rule tester, in which `1x2` are three samples. */
function movingValues(moves: readonly (readonly [minute: string, value: number])[], minutes: number): string {
  const untils = [...moves.slice(1).map(([minute]) => Number(minute) - 1), minutes];
  return moves.map(([minute, value], at) => `${value}x${(untils[at] ?? 0) - Number(minute)}`).join(' ');
}

/** An alert as Prometheus reports it. */
export interface Alert {
  readonly state: 'pending' | 'firing';
  readonly labels: Readonly<Record<string, string>>;
}

export interface Prometheus {
  /** Resolves with an answer of Prometheus' API. */
  read<T>(path: string): Promise<T>;
  /** Resolves with the alert once it fires. */
  alert(name: string): Promise<Alert>;
}

/** Starts Prometheus with the rules, and has it scrape the server every second. It ends with the test. */
export async function startPrometheus(
  t: TestContext,
  server: { readonly baseUrl: string },
): Promise<Prometheus> {
  const folder = temporaryDirectory(t);
  const port = await freePort();
  const config = {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: [RULES],
    scrape_configs: [
      {
        job_name: 'troupe',
        authorization: { credentials: OWNER.token },
        static_configs: [{ targets: [new URL(server.baseUrl).host] }],
      },
    ],
  };
  writeFileSync(join(folder, 'prometheus.yml'), JSON.stringify(config), { mode: 0o600 });
  const child = spawn(
    'prometheus',
    [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { stdio: 'ignore' },
  );
  const ended = once(child, 'exit');
  t.after(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const read = async <T>(path: string): Promise<T> => {
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`);
    return ((await response.json()) as { readonly data: T }).data;
  };
  await eventually('Prometheus answers', () => read('targets').then(Boolean, () => false));
  return {
    read,
    alert: (name) =>
      eventually(
        `the alert ${name}`,
        async () => {
          const { alerts } = await read<{ readonly alerts: readonly Alert[] }>('alerts');
          return alerts.find(({ labels }) => labels.alertname === name);
        },
        30_000,
      ),
  };
}
