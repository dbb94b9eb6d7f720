import { tally } from './counting/tally.ts';
import type { UnitOfWork } from './counting/unit.ts';
import type { Measure } from './measure.ts';
import { writeProfiles } from './profile/profiles.ts';
import { type LaunchedServer, launchServer, type ServerSettings } from './server.ts';

/** The stage of a scenario: everything that is started through it ends with the scenario. */
export interface Stage {
  /** Take fewer samples and shorter loads, to check that the scenario works. The figures are not for publication. */
  readonly quick: boolean;
  /** Starts a server and waits until it is idle. */
  server(settings?: ServerSettings): Promise<LaunchedServer>;
  /** Returns the number of samples: `full`, or in a quick run `quick` or a tenth. */
  count(full: number, quick?: number): number;
  /**
   * Returns how many seconds to measure: the number on the command line if there is one, otherwise `full`, or `quick`
   * in a quick run.
   */
  seconds(full: number, quick: number): number;
  /** Registers a clean-up. Clean-ups run after the scenario, in reverse order. */
  after(cleanUp: () => unknown): void;
}

/** One scenario of the bench. */
export interface Scenario {
  readonly name: string;
  readonly title: string;
  /** Seconds after which the scenario fails. */
  readonly limitS: number;
  run(stage: Stage): Promise<readonly Measure[]>;
  /** The work whose cost is counted and profiled, on a server of its own. */
  readonly unit?: UnitOfWork;
}

/** Thrown by a scenario that cannot be measured on this machine. The message says why. */
export class Skipped extends Error {}

/** How scenarios are performed. */
export interface Performance {
  readonly quick: boolean;
  /** The seconds on the command line, if any, for scenarios that have no number of samples. */
  readonly seconds: number | undefined;
  /** The file of the server's program. */
  readonly main: string;
}

/** Set while counting, which takes time of its own. */
const COUNTING_LIMIT_S = 120;

/** Runs a scenario, and counts the cost of its work. Rejects when the scenario takes longer than its limit. */
export function perform(scenario: Scenario, how: Performance): Promise<readonly Measure[]> {
  const { unit, limitS } = scenario;
  return onStage(
    scenario.name,
    unit === undefined ? limitS : limitS + COUNTING_LIMIT_S,
    how,
    async (stage) => {
      const measures = await scenario.run(stage);
      if (unit === undefined) return measures;
      return [...measures, ...(await tally(unit, stage.server, stage.quick))];
    },
  );
}

/** Writes profiles of the scenario's work instead of measuring it. Returns the paths; none when it has no work of the kind. */
export function profile(scenario: Scenario, folder: string, how: Performance): Promise<readonly string[]> {
  const { unit, name } = scenario;
  return onStage(name, COUNTING_LIMIT_S, how, async ({ server, quick }) =>
    unit === undefined ? [] : writeProfiles(name, unit, server, { folder, quick }),
  );
}

async function onStage<T>(
  name: string,
  limitS: number,
  { quick, seconds, main }: Performance,
  act: (stage: Stage) => Promise<T>,
): Promise<T> {
  const cleanUps: (() => unknown)[] = [];
  const stage: Stage = {
    quick,
    async server(settings = {}) {
      const server = await launchServer({ ...settings, main });
      cleanUps.push(() => server.end());
      if (settings.waitUntilIdle !== false) await server.untilIdle();
      return server;
    },
    count: (full, few = Math.max(3, Math.ceil(full / 10))) => (quick ? few : full),
    seconds: (full, few) => seconds ?? (quick ? few : full),
    after: (cleanUp) => cleanUps.push(cleanUp),
  };
  const limit = later(limitS * 1000, `${name} took longer than ${limitS} s`);
  try {
    return await Promise.race([act(stage), limit.passed]);
  } finally {
    limit.clear();
    for (const cleanUp of cleanUps.reverse()) await cleanUp();
  }
}

function later(ms: number, message: string): { readonly passed: Promise<never>; clear(): void } {
  let timer: NodeJS.Timeout | undefined;
  const passed = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(message)), ms);
  });
  passed.catch(() => undefined); // the race handles the rejection
  return { passed, clear: () => clearTimeout(timer) };
}
