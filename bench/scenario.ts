import type { Measure } from './measure.ts';
import { type LaunchedServer, launchServer, type ServerSettings } from './server.ts';

/** What a scenario works with. Everything that it starts through the stage ends with the scenario. */
export interface Stage {
  /** Take fewer samples and shorter loads, to check that the scenario works. The figures are not for publication. */
  readonly quick: boolean;
  /** Starts a server and waits until it is idle. */
  server(settings?: ServerSettings): Promise<LaunchedServer>;
  /** Returns the number of samples: `full`, or in a quick run `quick` or a tenth. */
  count(full: number, quick?: number): number;
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
}

/** Runs a scenario and returns its measures. Rejects when it takes longer than its limit. */
export async function perform(
  scenario: Scenario,
  { quick, main }: { readonly quick: boolean; readonly main: string },
): Promise<readonly Measure[]> {
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
    after: (cleanUp) => cleanUps.push(cleanUp),
  };
  const limit = later(scenario.limitS * 1000, `${scenario.name} took longer than ${scenario.limitS} s`);
  try {
    return await Promise.race([scenario.run(stage), limit.passed]);
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
