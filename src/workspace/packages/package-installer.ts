/**
 * Lets children of the kernel host find out which packages a notebook lacks, and install them. A child that plans is
 * confined like a conversion. A child that installs also writes the folder that it fills, and connects only to the
 * proxy of this server. Packages without wheels are first built from their sources (source-builds.ts).
 */
import { existsSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ChildStarter } from '#src/confined/processes/confined-child.ts';
import { asList, asText } from '#src/confined/processes/json-shape.ts';
import type { IndexProxy } from './index-proxy.ts';
import { askInstaller } from './installer-child.ts';
import { PackageFailure } from './package-failure.ts';
import type { Progress } from './shared-installation.ts';
import { type BuildLimits, SourceBuilds } from './source-builds.ts';

/** The requirements of a notebook. */
export interface PackageWishes {
  /** The header of its file, which may have script metadata (PEP 723). */
  readonly script: string;
  /** The requirements of its workspace. If two have the same name, the later one counts. */
  readonly workspace: readonly string[];
}

/** The packages that a notebook needs in addition. */
export interface PackagePlan {
  /** The requirements in a normal form; empty when nothing is missing. */
  readonly requirements: readonly string[];
  /** Identifies exactly these requirements on exactly this Python and index. */
  readonly key: string;
  /** Differences from the requirements of the notebook, in sentences. */
  readonly notes: readonly string[];
  /** The requirements of the workspace by normal name. */
  readonly workspace: readonly (readonly [name: string, requirement: string])[];
}

/** The installed packages. */
export interface Installation {
  readonly packages: readonly (readonly [name: string, version: string])[];
  /** Whether some of the packages replace versions of the server's own environment. */
  readonly replaces: boolean;
}

export interface PackageInstallerOptions {
  readonly host: ChildStarter;
  /** The interpreter of kernels. */
  readonly python: string;
  /** The address of the index (PEP 503). */
  readonly index: string;
  /** Opens a connection to the index for one installation. */
  readonly openProxy: () => Promise<IndexProxy>;
  /** The limits of building packages from their sources; null when this server builds none. */
  readonly builds: BuildLimits | null;
}

const PLAN_TIMEOUT_MS = 30_000;
const INSTALL_TIMEOUT_MS = 15 * 60_000;
const SYSTEM_FOLDERS = ['/usr/local/bin', '/usr/bin'];

export class PackageInstaller {
  readonly #options: PackageInstallerOptions;

  constructor(options: PackageInstallerOptions) {
    this.#options = options;
  }

  /** Resolves with the packages that the notebook needs in addition. Rejects with a `PackageFailure`. */
  async plan({ script, workspace }: PackageWishes): Promise<PackagePlan> {
    const question = { step: 'plan', script, workspace, index: this.#options.index };
    const answer = await askInstaller(this.#options.host, question, { timeoutMs: PLAN_TIMEOUT_MS });
    return {
      requirements: asList(answer.requirements, asText, 'requirements'),
      key: asText(answer.key, 'key'),
      notes: asList(answer.notes, asText, 'notes'),
      workspace: asList(answer.workspace, asPair, 'workspace'),
    };
  }

  /**
   * Installs into `folder/site`; the folder exists and is empty. Files are hard links into the folder `cache` next to it, which all
   * installations share. Rejects with a `PackageFailure`, also when `signal` aborts; the
   * installer is killed then.
   */
  async install(
    requirements: readonly string[],
    folder: string,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<Installation> {
    const { host, python, index, openProxy, builds } = this.#options;
    const uv = [dirname(python), ...SYSTEM_FOLDERS].map((one) => join(one, 'uv')).find(existsSync);
    if (uv === undefined)
      throw new PackageFailure(
        'Packages cannot be installed, because uv is missing. Run `troupe setup`, or install uv next to the interpreter of kernels.',
      );
    await using proxy = await openProxy();
    const sources = new SourceBuilds(builds, {
      folder,
      progress,
      signal,
      ask: (question, task) =>
        // A link to uv may lead to a place that the child cannot see.
        askInstaller(host, { ...question, folder, uv: realpathSync(uv), index, proxy: proxy.url }, task),
      index: { kind: 'index', folder, port: proxy.port },
    });
    const install = (built: readonly string[]) =>
      sources.askIndex({ step: 'install', requirements, built }, INSTALL_TIMEOUT_MS);
    try {
      const answer = await sources.askWithBuilds(requirements, install);
      return {
        packages: asList(answer.packages, asPair, 'packages'),
        replaces: answer.replaces === true,
      };
    } catch (error) {
      throw proxy.refusal === undefined ? error : new PackageFailure(proxy.refusal);
    }
  }
}

function asPair(value: unknown): [string, string] {
  const [first, second] = asList(value, asText, 'a pair');
  return [first ?? '', second ?? ''];
}
