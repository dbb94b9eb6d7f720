/**
 * Sets of installed packages, one folder for each list of requirements. A set is made once, however many sessions
 * need it. Sessions share it and only read it. Sets survive restarts. Incomplete sets that a crash has left are
 * removed at the start. Files that sets have in common are hard links into one cache. When all sets together exceed
 * their limit, the cache and unused sets are removed, the least recently used first.
 *
 * The workers of one server share the folder. Each makes sets in folders of its own, so two workers may make the same
 * set; the second one is then discarded. A set that another worker uses is never removed.
 */

import { randomUUID } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { FairSemaphore } from '#src/base/async/fair-semaphore.ts';
import { unawaited } from '#src/base/async/unawaited.ts';
import type { Log } from '#src/base/log/log.ts';
import { folderSizeOf, installWithin, type Room } from './folder-size.ts';
import { PackageFailure } from './package-failure.ts';
import type { Installation, PackageInstaller, PackagePlan, PackageWishes } from './package-installer.ts';
import { abandoned, type Progress, SharedInstallation } from './shared-installation.ts';

/** A set, which stays until it is released. */
export interface PackageSet extends Disposable {
  /** The folder in which Python finds the packages. */
  readonly path: string;
  /** Whether some of the packages replace versions of the server's own environment. */
  readonly replaces: boolean;
  readonly packages: Installation['packages'];
}

export interface PackageSetsOptions {
  readonly root: string;
  readonly installer: Pick<PackageInstaller, 'plan' | 'install'>;
  /** The limit of all sets together, in bytes; 0 means no limit. */
  readonly maxBytes: number;
  readonly log: Pick<Log, 'info' | 'warn'>;
  /** The other workers of the server; absent in a server of one process. */
  readonly others?: OtherWorkers | undefined;
}

export interface OtherWorkers {
  /** The name of this worker. No earlier worker had this name. */
  readonly own: string;
  /** Returns whether another worker with this name is alive. */
  lives(worker: string): boolean;
  /** Resolves with the keys of the sets that the other workers use. */
  inUse(): Promise<ReadonlySet<string>>;
}

interface Manifest extends Installation {
  readonly requirements: readonly string[];
  readonly bytes: number;
}

const MANIFEST = 'manifest.json';
/** The folder of the cache and the unfinished sets, to which installers write. */
const WORKSHOP = '.workshop';
const CACHE = 'cache';
const UNFINISHED = '.making-';
/**
 * A list that could not be installed is not tried again for this long, so that a session that tries to start again
 * and again does not delay others.
 */
const RETRY_AFTER_MS = 60_000;
const MAX_PLANS = 1000;
/**
 * How many sets are made at the same time, and for one workspace. Each keeps uv and its threads busy, and fills the disk. Requests that
 * wait for a place use no process and no disk.
 */
const PLACES = { width: 3, widthOfKey: 2, queueOfKey: Number.POSITIVE_INFINITY };

/** The packages that a notebook needs, and its workspace. Workspaces that wait for installations take turns. */
export interface PackageRequest extends PackageWishes {
  readonly workspaceId: string;
}

export class PackageSets implements Disposable {
  readonly #options: PackageSetsOptions;
  readonly #plans = new Map<string, Promise<PackagePlan>>();
  readonly #making = new Map<string, SharedInstallation<Manifest>>();
  readonly #places = new FairSemaphore(PLACES);
  readonly #failures = new Map<string, { readonly error: PackageFailure; readonly until: number }>();
  readonly #users = new Map<string, number>();
  #isDisposed = false;
  /** The installations that have begun and not ended. */
  #installing = 0;

  /** Removes the half-made sets of an earlier server. */
  constructor(options: PackageSetsOptions) {
    this.#options = options;
    mkdirSync(this.#cache(), { recursive: true, mode: 0o700 });
    for (const name of readdirSync(this.#workshop())) {
      if (name.startsWith(UNFINISHED) && options.others?.lives(makerOf(name)) !== true)
        unawaited(
          rm(join(this.#workshop(), name), { recursive: true, force: true }),
          'package-sets: the removal of a half-made package set',
        );
    }
  }

  /** Returns the keys of the sets that are in use. */
  inUse(): readonly string[] {
    return [...this.#users.keys()];
  }

  /**
   * Resolves with the packages that a notebook needs in addition to the server's own environment; null when it needs
   * none. Rejects with a `PackageFailure`. `progress` is called with the present step, and `noted` with each
   * difference from the requirements. When `signal` aborts, the caller stops waiting, and an installation without any waiting caller is
   * aborted.
   */
  async obtain(
    { workspaceId, ...wishes }: PackageRequest,
    progress: Progress,
    signal: AbortSignal = new AbortController().signal,
    noted: (difference: string) => void = () => {},
  ): Promise<PackageSet | null> {
    const { requirements, key, workspace, notes } = await this.plan(wishes);
    for (const note of notes) noted(note);
    if (requirements.length === 0) return null;
    if (signal.aborted) throw abandoned();
    this.#users.set(key, (this.#users.get(key) ?? 0) + 1);
    let isReleased = false;
    const release = () => {
      if (isReleased) return;
      isReleased = true;
      const left = (this.#users.get(key) ?? 1) - 1;
      if (left > 0) this.#users.set(key, left);
      else this.#users.delete(key);
    };
    try {
      const { replaces, packages } = await this.#made(key, requirements, (making) =>
        making.wait(workspaceId, progress, signal),
      );
      return { path: join(this.#folder(key), 'site'), replaces, packages, [Symbol.dispose]: release };
    } catch (error) {
      release();
      const isJoint = wishes.script !== '' && workspace.length > 0 && error instanceof PackageFailure;
      throw isJoint ? new PackageFailure(`${error.message} ${shareOf(workspace)}`) : error;
    }
  }

  /**
   * Resolves with the packages of a set; undefined when the set is not on the disk, or the requirements cannot be
   * met.
   */
  async installed(wishes: PackageWishes): Promise<Installation['packages'] | undefined> {
    const plan = await this.plan(wishes).catch((error: unknown) => {
      if (error instanceof PackageFailure) return undefined;
      throw error;
    });
    return plan === undefined || plan.requirements.length === 0 ? undefined : this.#read(plan.key)?.packages;
  }

  /** Leaves half-made sets to the next server from here on. */
  [Symbol.dispose](): void {
    this.#isDisposed = true;
  }

  /** Resolves with the packages to install for a notebook. Rejects with a `PackageFailure`. */
  plan(wishes: PackageWishes): Promise<PackagePlan> {
    const name = JSON.stringify([wishes.script, wishes.workspace]);
    const known = this.#plans.get(name);
    if (known !== undefined) return known;
    const plan = this.#options.installer.plan(wishes);
    this.#plans.set(name, plan);
    const [oldest] = this.#plans.keys();
    if (this.#plans.size > MAX_PLANS && oldest !== undefined) this.#plans.delete(oldest);
    plan.catch(() => this.#plans.delete(name));
    return plan;
  }

  async #made(
    key: string,
    requirements: readonly string[],
    wait: (making: SharedInstallation<Manifest>) => Promise<Manifest>,
  ): Promise<Manifest> {
    const underWay = this.#making.get(key);
    if (underWay !== undefined && !underWay.isAbandoned) return wait(underWay);
    const known = this.#read(key);
    if (known !== undefined) return known;
    const failed = this.#failures.get(key);
    if (failed !== undefined && failed.until > performance.now()) throw failed.error;
    const making = new SharedInstallation(this.#places, (tell, left) =>
      this.#makeNew(key, requirements, tell, left),
    );
    this.#making.set(key, making);
    try {
      return await wait(making);
    } catch (error) {
      if (error instanceof PackageFailure && !error.isPassing)
        this.#failures.set(key, { error, until: performance.now() + RETRY_AFTER_MS });
      throw error;
    }
  }

  async #makeNew(
    key: string,
    requirements: readonly string[],
    progress: Progress,
    left: AbortSignal,
  ): Promise<Manifest> {
    try {
      return await this.#make(key, requirements, progress, left);
    } finally {
      // All sessions may have left this installation, and another one may have begun since.
      if (!left.aborted || this.#making.get(key)?.isAbandoned) this.#making.delete(key);
    }
  }

  async #make(
    key: string,
    requirements: readonly string[],
    progress: Progress,
    left: AbortSignal,
  ): Promise<Manifest> {
    if (left.aborted) throw abandoned();
    const { installer, log } = this.#options;
    // The folder has a name of its own, because the leftovers of a crash may still be in removal.
    const folder = mkdtempSync(this.#unfinished('new-'));
    const startedAt = performance.now();
    this.#installing++;
    try {
      mkdirSync(this.#cache(), { recursive: true, mode: 0o700 });
      const installed = await installWithin(
        await this.#room(),
        folder,
        left,
        (signal) => installer.install(requirements, folder, progress, signal),
        this.#cache(),
      );
      const bytes = await folderSizeOf(folder);
      const manifest = { requirements, ...installed, bytes };
      writeFileSync(join(folder, MANIFEST), JSON.stringify(manifest), { flush: true });
      if (!this.#publish(folder, key)) await rm(folder, { recursive: true, force: true });
      const durationMs = Math.round(performance.now() - startedAt);
      log.info({ packages: installed.packages.length, bytes, durationMs }, 'packages were installed');
      await this.#removeUnused(key);
      return manifest;
    } catch (error) {
      // Removing gigabytes takes a while. A server that stops should not wait for it: the next one removes the rest.
      if (!this.#isDisposed) {
        await rm(folder, { recursive: true, force: true });
        await this.#dropCache(); // its downloaded files do not count
      }
      if (left.aborted) log.info({}, 'an installation was broken off, because nobody waits for it any more');
      else log.warn({ err: error }, 'packages could not be installed');
      throw error instanceof PackageFailure
        ? error
        : new PackageFailure('The packages could not be installed; the log of the server says why.');
    } finally {
      this.#installing--;
    }
  }

  /**
   * Resolves with the most bytes of a new set: the limit minus the sets that sessions use, in this
   * and in other workers.
   */
  async #room(): Promise<Room> {
    const { maxBytes, others } = this.#options;
    const keys = new Set([...this.#users.keys(), ...((await others?.inUse()) ?? [])]);
    let usedBytes = [...keys].reduce((sum, key) => sum + this.#bytesOf(key), 0);
    // Sets have files in common, which takes a while to count.
    if (maxBytes > 0 && usedBytes > maxBytes / 2)
      usedBytes = await folderSizeOf(...[...keys].map((key) => this.#folder(key)).filter(existsSync));
    return { bytes: maxBytes === 0 ? Number.POSITIVE_INFINITY : maxBytes - usedBytes, ofBytes: maxBytes };
  }

  /** Gives a set its name. Returns false when there is such a set already. */
  #publish(folder: string, key: string): boolean {
    try {
      renameSync(folder, this.#folder(key));
      return true;
    } catch (error) {
      if (this.#read(key) === undefined) throw error;
      return false;
    }
  }

  /** Returns the manifest of a set, and notes the time of this use; undefined when there is no such set. */
  #read(key: string): Manifest | undefined {
    const path = join(this.#folder(key), MANIFEST);
    try {
      const manifest = JSON.parse(readFileSync(path, 'utf8')) as Manifest;
      const now = new Date();
      utimesSync(path, now, now);
      return manifest;
    } catch {
      return undefined; // the set has no manifest, or does not exist
    }
  }

  async #removeUnused(newest: string): Promise<void> {
    const { root, maxBytes, log, others } = this.#options;
    if (maxBytes === 0) return;
    const keys = (await readdir(root)).filter((name) => !name.startsWith('.'));
    const found = keys.map((key) => ({ key, bytes: this.#bytesOf(key), usedAt: this.#usedAt(key) }));
    if (found.reduce((sum, { bytes }) => sum + bytes, 0) <= maxBytes) return;
    await this.#dropCache();
    const usedElsewhere = (await others?.inUse()) ?? new Set();
    for (const { key, bytes, usedAt } of found.sort((a, b) => a.usedAt - b.usedAt)) {
      if ((await folderSizeOf(root)) <= maxBytes) return;
      if (key === newest || this.#users.has(key) || usedElsewhere.has(key)) continue;
      if (others !== undefined && this.#usedAt(key) !== usedAt) continue; // another worker now uses the set
      // The set is renamed first, so that a partly removed set is not taken for a whole one after a crash.
      renameSync(this.#folder(key), this.#unfinished(key));
      await rm(this.#unfinished(key), { recursive: true, force: true });
      log.info({ bytes }, 'packages that nobody uses were removed');
    }
  }

  /** Removes the cache, unless an installation other than the one that calls this uses it. Sets keep their files. */
  async #dropCache(): Promise<void> {
    const elsewhere = (await this.#options.others?.inUse()) ?? new Set();
    // A set that is in use but does not exist is being installed.
    const isUsed = this.#installing > 1 || [...elsewhere].some((key) => !existsSync(this.#folder(key)));
    if (isUsed || !existsSync(this.#cache())) return;
    const dropped = this.#unfinished(`cache-${randomUUID()}`);
    renameSync(this.#cache(), dropped);
    await rm(dropped, { recursive: true, force: true });
  }

  #bytesOf(key: string): number {
    try {
      return (JSON.parse(readFileSync(join(this.#folder(key), MANIFEST), 'utf8')) as Manifest).bytes;
    } catch {
      return 0; // the set is being removed
    }
  }

  #usedAt(key: string): number {
    return statSync(join(this.#folder(key), MANIFEST), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  }

  #folder(key: string): string {
    return join(this.#options.root, key);
  }

  #workshop(): string {
    return join(this.#options.root, WORKSHOP);
  }

  #cache(): string {
    return join(this.#workshop(), CACHE);
  }

  /** Returns the path of a folder for an unfinished set. It names this worker, so that others know when to remove it. */
  #unfinished(name: string): string {
    return join(this.#workshop(), `${UNFINISHED}${this.#options.others?.own ?? ''}.${name}`);
  }
}

/** Returns the name of the worker whose unfinished set is in this folder. */
function makerOf(name: string): string {
  return name.slice(UNFINISHED.length, name.lastIndexOf('.'));
}

/** Returns a sentence that names the requirements of the workspace. */
function shareOf(workspace: PackagePlan['workspace']): string {
  return `(The workspace asks for ${workspace.map(([, one]) => one).join(', ')}: see \`troupe packages list\`.)`;
}
