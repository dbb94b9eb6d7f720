/**
 * Builds the packages of one installation that have no wheels. The sources and the packages that a build needs are
 * fetched by children that reach the index and run no code of a package. The build backend runs in a child that has
 * no network and writes only the folder of its build. So a build reaches neither the index nor the cache nor another
 * build.
 */
import { mkdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { asList, asText } from '#src/confined/processes/json-shape.ts';
import { whileWithin } from './folder-size.ts';
import type { InstallerAnswer, InstallerReach, InstallerTask } from './installer-child.ts';
import { PackageFailure } from './package-failure.ts';
import type { Progress } from './shared-installation.ts';

export interface BuildLimits {
  /** The most time of one build, in milliseconds. */
  readonly timeoutMs: number;
}

export interface SourceBuildsOptions {
  /** The folder of the installation, in which builds have theirs. */
  readonly folder: string;
  readonly progress: Progress;
  readonly signal: AbortSignal;
  /** Asks a child. Rejects with a `PackageFailure`. */
  readonly ask: (
    question: Readonly<Record<string, unknown>>,
    task: InstallerTask,
  ) => Promise<InstallerAnswer>;
  /** The paths and ports that a child may use if it sends requests to the index. */
  readonly index: InstallerReach;
}

/** A package without wheels, and the versions that other packages ask for. */
interface Lacking {
  readonly name: string;
  readonly specifiers: readonly string[];
}

/** The most builds in one installation. */
const MAX_BUILDS = 30;
/**
 * How deeply builds may nest: the build of a package may need a package that has to be built
 * itself.
 */
const MAX_DEPTH = 3;
const FETCH_TIMEOUT_MS = 5 * 60_000;
export const MAX_BUILD_SIZE = { bytes: 4 * 2 ** 30, files: 200_000 };

export class SourceBuilds {
  readonly #limits: BuildLimits | null;
  readonly #options: SourceBuildsOptions;
  /** The folders of the wheels that were built, by the names of their packages. */
  readonly #built = new Map<string, string>();
  #begun = 0;

  constructor(limits: BuildLimits | null, options: SourceBuildsOptions) {
    this.#limits = limits;
    this.#options = options;
  }

  /** Sends a question to an installer that may connect to the index, and resolves with its answer. */
  askIndex(question: Readonly<Record<string, unknown>>, timeoutMs: number): Promise<InstallerAnswer> {
    const { ask, progress, signal, index } = this.#options;
    return ask(question, { timeoutMs, reach: index, progress, signal });
  }

  /**
   * Calls `install` with the folders of built wheels until it lacks no wheel, and builds the missing ones in between. Resolves with
   * its answer. Rejects with a `PackageFailure`.
   */
  async askWithBuilds(
    requirements: readonly string[],
    install: (built: readonly string[]) => Promise<InstallerAnswer>,
    depth = 0,
  ): Promise<InstallerAnswer> {
    for (;;) {
      const answer = await install([...this.#built.values()]);
      if (answer.lacking === undefined) return answer;
      const lacking = asList(answer.lacking, asLacking, 'lacking');
      const reason = asText(answer.error, 'error');
      if (this.#limits === null) throw buildsNothing(lacking);
      const missing = lacking.filter(({ name }) => !this.#built.has(name));
      // The installer still lacks these packages, so the built versions are not the needed ones.
      if (missing.length === 0 || depth >= MAX_DEPTH) throw new PackageFailure(reason);
      for (const one of missing) await this.#build(one, requirements, this.#limits, depth);
    }
  }

  async #build(
    { name, specifiers }: Lacking,
    requirements: readonly string[],
    { timeoutMs }: BuildLimits,
    depth: number,
  ): Promise<void> {
    if (++this.#begun > MAX_BUILDS)
      throw new PackageFailure(`More than ${MAX_BUILDS} packages would have to be built from their sources.`);
    const { folder, ask, progress, signal } = this.#options;
    const build = join(folder, `build-${this.#begun}`);
    const [work, environment] = [join(build, 'work'), join(build, 'environment')];
    mkdirSync(build, { mode: 0o755 });
    const wanted = [...requirements, ...specifiers.map((specifier) => `${name}${specifier}`)];
    const source = await this.askIndex(
      { step: 'source', build, name, requirements: wanted },
      FETCH_TIMEOUT_MS,
    );
    if (source.built === null) {
      const [version, archive] = [asText(source.version, 'version'), asText(source.archive, 'archive')];
      const about = { build, name, version, archive };
      const run = (question: Readonly<Record<string, unknown>>, reach: InstallerReach) =>
        whileWithin(MAX_BUILD_SIZE, work, signal, tooLarge(name), (withinLimit) =>
          ask({ ...about, ...question }, { timeoutMs, reach, progress, signal: withinLimit }),
        );
      const furnish = async (needs: readonly string[]) => {
        const make = (built: readonly string[]) =>
          this.askIndex({ step: 'environment', ...about, requirements: needs, built }, FETCH_TIMEOUT_MS);
        await this.askWithBuilds(needs, make, depth + 1);
      };
      const needs = ({ needs }: InstallerAnswer) => asList(needs, asText, 'needs');
      await furnish(needs(await run({ step: 'unpack' }, { kind: 'build', work })));
      const building: InstallerReach = { kind: 'build', work, environment };
      const more = needs(await run({ step: 'build', asks: true }, building));
      if (more.length > 0) {
        await furnish(more);
        await run({ step: 'build', asks: false }, building);
      }
      const kept = await this.askIndex(
        { step: 'keep', ...about, key: asText(source.key, 'key') },
        FETCH_TIMEOUT_MS,
      );
      this.#built.set(name, asText(kept.built, 'built'));
    } else this.#built.set(name, asText(source.built, 'built'));
    await rm(build, { recursive: true, force: true });
  }
}

function asLacking(value: unknown): Lacking {
  const [name, specifiers] = asList(value, (one) => one, 'a package without wheels');
  return { name: asText(name, 'name'), specifiers: asList(specifiers, asText, 'specifiers') };
}

function buildsNothing(lacking: readonly Lacking[]): PackageFailure {
  const names = lacking.map(({ name }) => name).join(', ');
  const verb = lacking.length === 1 ? 'has' : 'have';
  return new PackageFailure(
    `${names} ${verb} no wheel for the Python of this server, which builds no packages from their sources (TROUPE_PACKAGES_BUILD).`,
  );
}

function tooLarge(name: string): PackageFailure {
  return new PackageFailure(
    `The build of ${name} writes more than ${MAX_BUILD_SIZE.bytes / 2 ** 30} GiB or ${MAX_BUILD_SIZE.files} files.`,
  );
}
