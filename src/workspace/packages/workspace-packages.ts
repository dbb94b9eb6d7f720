/**
 * The packages that all notebooks of a workspace have. They are resolved and installed before they are stored, so
 * stored packages are known to install. Kernels started later have them, together with the packages of their notebook.
 */

import { AppError, notFound } from '#src/base/errors/errors.ts';
import { refuseOverQuota } from '#src/base/errors/quota.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import { timestamp } from '#src/base/time/clock.ts';
import type {
  AddedPackages,
  PackageInstallation,
  WorkspacePackage,
  WorkspacePackageList,
} from '#src/contract/wire/packages.ts';
import { workspaceRecords } from '#storage/records/identity.ts';
import { type WorkspacePackagesRecord, workspacePackageRecords } from '#storage/records/packages.ts';
import type { Store } from '#storage/store.ts';
import { PackageFailure } from './package-failure.ts';
import type { PackageSets } from './package-sets.ts';

/** The most packages of one workspace. */
const MAX_PACKAGES = 100;

/** Resolves with the sessions of a workspace that have a kernel. */
type SessionsOf = (workspaceId: WorkspaceId) => Promise<readonly string[]>;

/** The caller who adds packages, and the workspace. */
interface Caller {
  readonly workspaceId: WorkspaceId;
  readonly userId: string;
}

/** An installation. Its step and outcome change over time. */
type Installation = {
  -readonly [Name in keyof PackageInstallation]: PackageInstallation[Name];
};

/** A requested package, in the form of the audit. `detail` is set when the workspace already had the package. */
interface PackageAddition {
  readonly action: 'package.add';
  /** The requirement. */
  readonly target: string;
  readonly outcome: 'done';
  readonly detail?: string;
}

export class WorkspacePackages {
  readonly #store: Store;
  readonly #sets: PackageSets | undefined;
  readonly #openSessions: SessionsOf;
  /** The installation under way, and the last failed one. */
  readonly #installations = new Map<WorkspaceId, Installation>();

  /** Without `sets`, this server installs no packages. */
  constructor(store: Store, sets: PackageSets | undefined, openSessions: SessionsOf) {
    this.#store = store;
    this.#sets = sets;
    this.#openSessions = openSessions;
  }

  list(workspaceId: WorkspaceId): WorkspacePackageList {
    const installation = this.#installations.get(workspaceId);
    return {
      items: this.#items(workspaceId),
      enabled: this.#sets !== undefined,
      installation:
        installation === undefined ? null : { ...installation, requirements: [...installation.requirements] },
    };
  }

  /** Returns whether the workspace has a package, in any spelling of its name. */
  has(workspaceId: WorkspaceId, name: string): boolean {
    return Object.hasOwn(this.#stored(workspaceId), normalName(name));
  }

  /** Resolves with the sessions of a workspace that have a kernel, which keeps the packages that it began with. */
  openSessions(workspaceId: WorkspaceId): Promise<readonly string[]> {
    return this.#openSessions(workspaceId);
  }

  /**
   * Resolves with the packages of a workspace and their dependencies, by name. A package whose files are not on the disk has the
   * version for which the workspace asks, such as `>=2`.
   */
  async installed(workspaceId: WorkspaceId): Promise<{ readonly name: string; readonly version: string }[]> {
    const stored = Object.entries(this.#stored(workspaceId));
    const workspace = stored.map(([, { requirement }]) => requirement);
    const known = await this.#sets?.installed({ script: '', workspace });
    const versions = new Map(stored.map(([name, { requirement }]) => [name, versionIn(requirement)]));
    for (const [name, version] of known ?? []) versions.set(normalName(name), version);
    return [...versions].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, version]) => ({ name, version }));
  }

  /** Returns the requirements of a workspace, for a kernel that is started. */
  requirementsOf(workspaceId: WorkspaceId): readonly string[] {
    return Object.values(this.#stored(workspaceId)).map(({ requirement }) => requirement);
  }

  /**
   * Installs packages and stores them, in place of those with the same names; `noted` is called in that turn, with the changes for the
   * audit. If the workspace already has a package by the same requirement, that package and the name of its first user stay. Rejects
   * with `packages_disabled`, `installation_in_progress`, `invalid_request` for a text that is not a requirement,
   * `quota_exceeded`, and `packages_not_installed` with the reason.
   */
  async add(
    { workspaceId, userId }: Caller,
    requirements: readonly string[],
    noted: (changes: readonly PackageAddition[]) => void,
  ): Promise<AddedPackages> {
    const sets = this.#sets;
    if (sets === undefined) throw disabled();
    if (this.#installations.get(workspaceId)?.error === null)
      throw new AppError('installation_in_progress', 'Wait until `GET /packages` shows no installation.');
    const installation: Installation = {
      requirements,
      startedAt: timestamp(),
      text: 'checking',
      error: null,
    };
    this.#installations.set(workspaceId, installation);
    try {
      const before = this.#stored(workspaceId);
      const added = await readRequirements(sets, requirements);
      const names = new Set([...Object.keys(before), ...added.map(([name]) => name)]);
      refuseOverQuota({ what: 'packages' }, MAX_PACKAGES + 1, () => names.size);
      const joint = {
        ...before,
        ...Object.fromEntries(added.map(([name, requirement]) => [name, { requirement }])),
      };
      const workspace = Object.values(joint).map(({ requirement }) => requirement);
      using set = await sets.obtain({ script: '', workspace, workspaceId }, (text) => {
        installation.text = text;
      });
      const changes = this.#note(workspaceId, added, { addedBy: userId, addedAt: timestamp() });
      if (changes.length > 0) noted(changes);
      this.#installations.delete(workspaceId);
      const installed = (set?.packages ?? []).map(([name, version]) => ({ name, version }));
      return {
        items: this.#items(workspaceId),
        installed,
        openSessions: [...(await this.#openSessions(workspaceId))],
      };
    } catch (error) {
      if (!(error instanceof PackageFailure)) {
        this.#installations.delete(workspaceId);
        throw error;
      }
      installation.error = error.message;
      throw new AppError('packages_not_installed', error.message);
    }
  }

  /** Removes a package, in any spelling of its name. Kernels that run keep it. Throws `not_found`. */
  remove(workspaceId: WorkspaceId, name: string): void {
    const { [normalName(name)]: removed, ...byName } = this.#stored(workspaceId);
    if (removed === undefined) throw notFound();
    this.#store.write((tx) => tx.put(workspacePackageRecords, { byName }, workspaceId));
  }

  /**
   * Stores the packages, and returns the changes for the audit: none in a deleted workspace. Packages that other
   * requests have removed in the meantime stay removed.
   */
  #note(
    workspaceId: WorkspaceId,
    asked: readonly (readonly [name: string, requirement: string])[],
    by: { readonly addedBy: string; readonly addedAt: string },
  ): readonly PackageAddition[] {
    if (this.#store.get(workspaceRecords, workspaceId) === undefined) return [];
    const stored = this.#stored(workspaceId);
    const added = asked.filter(([name, requirement]) => stored[name]?.requirement !== requirement);
    if (added.length > 0) {
      const byName = {
        ...stored,
        ...Object.fromEntries(added.map(([name, requirement]) => [name, { requirement, ...by }])),
      };
      this.#store.write((tx) => tx.put(workspacePackageRecords, { byName }, workspaceId));
    }
    return asked.map(([name, requirement]) => ({
      action: 'package.add',
      target: requirement,
      outcome: 'done',
      ...(stored[name]?.requirement === requirement && { detail: 'already there' }),
    }));
  }

  #items(workspaceId: WorkspaceId): WorkspacePackage[] {
    return Object.entries(this.#stored(workspaceId))
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, { requirement, addedBy, addedAt }]) => ({
        name,
        requirement,
        createdBy: addedBy,
        createdAt: addedAt,
      }));
  }

  #stored(workspaceId: WorkspaceId): WorkspacePackagesRecord['byName'] {
    const store = this.#store;
    store.refreshShared(); // kernels are also started again without a request
    return store.get(workspacePackageRecords, workspaceId)?.byName ?? {};
  }
}

/** Returns the name of each requirement with its normal form. Rejects with `invalid_request`. */
async function readRequirements(
  sets: PackageSets,
  requirements: readonly string[],
): Promise<readonly (readonly [name: string, requirement: string])[]> {
  try {
    return (await sets.plan({ script: '', workspace: requirements })).workspace;
  } catch (error) {
    if (!(error instanceof PackageFailure)) throw error;
    throw new AppError('invalid_request', error.message, {
      errors: [{ path: '/requirements', message: error.message }],
    });
  }
}

/** Returns the versions that a requirement allows, without a marker. */
function versionIn(requirement: string): string {
  return (
    /[=<>!~][^;]*/
      .exec(requirement)?.[0]
      .trim()
      .replace(/^===?\s*/, '') ?? ''
  );
}

/** Returns the name as indexes compare names (PEP 503). */
function normalName(name: string): string {
  return name.toLowerCase().replace(/[-_.]+/g, '-');
}

function disabled(): AppError {
  return new AppError(
    'packages_disabled',
    'This server installs no packages: its operator has turned TROUPE_PACKAGES off.',
  );
}
