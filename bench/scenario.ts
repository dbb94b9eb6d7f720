import type { Measure } from './measure.ts';
import { type LaunchedServer, launchServer, type ServerSettings } from './server.ts';

/** What a scenario is given. Everything it starts through it ends with the scenario. */
export interface Stage {
  /** Fewer samples, shorter loads: to see that it works, not to publish. */
  readonly quick: boolean;
  /** A fresh server that has come to rest. */
  server(settings?: ServerSettings): Promise<LaunchedServer>;
  /** `full` samples, or a quick run's share of them. */
  count(full: number, quick?: number): number;
  /** Runs when the scenario is over, in reverse order. */
  after(cleanUp: () => unknown): void;
}

export interface Scenario {
  readonly name: string;
  readonly title: string;
  /** No scenario may take longer. */
  readonly limitS: number;
  run(stage: Stage): Promise<readonly Measure[]>;
}

/** Runs a scenario on a stage of its own; rejects when it takes longer than it may. */
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
      if (settings.settle !== false) await server.settled();
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
  passed.catch(() => undefined); // whoever races it hears of it
  return { passed, clear: () => clearTimeout(timer) };
}
