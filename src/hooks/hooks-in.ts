/**
 * Hooks in: addresses at which another program fires a job, with a secret of their own. The body of a request becomes an argument of
 * the firing, as data. A request with the id of an earlier one is the same firing.
 *
 * The home of the job writes all records of its hooks. A request may come to any worker, which checks the secret and asks the home.
 */

import { hash, timingSafeEqual } from 'node:crypto';
import type { Principal } from '#src/base/caller/principal.ts';
import { AppError, type ErrorCode, notFound } from '#src/base/errors/errors.ts';
import { refuseOverQuota } from '#src/base/errors/quota.ts';
import { type HookInId, newId, timeOfText, timeText, type UserId, type WorkspaceId } from '#src/base/ids.ts';
import { timestamp } from '#src/base/time/clock.ts';
import type { CreatedHookIn, HookIn } from '#src/contract/wire/hook.ts';
import type { Occurrence } from '#src/contract/wire/job.ts';
import { pathOf } from '#src/contract/wire/paths.ts';
import type { Jobs } from '#src/jobs/jobs.ts';
import type { PlaneContext } from '#src/runtime/sessions/plane-context.ts';
import { SYSTEM } from '#storage/keys.ts';
import {
  type HookInHome,
  type HookInRecord,
  hookInAges,
  hookInFirings,
  hookInHomes,
  hookInRecords,
} from '#storage/records/hooks.ts';
import { sealedSecretName } from '#storage/records/notebooks.ts';
import type { Transaction } from '#storage/transaction.ts';
import type { HookVault } from './hooks.ts';
import { newHookSecret, signatureOf } from './signature.ts';

/** A vault that also opens secrets. */
export interface HookInVault extends HookVault {
  open(workspaceId: string, name: string): string;
}

/** The parts of a request that prove that its sender knows the secret, and that name the firing. Missing headers are empty. */
export interface HookRequest {
  readonly hookInId: string;
  readonly authorization: string;
  readonly webhookId: string;
  readonly webhookTimestamp: string;
  readonly webhookSignature: string;
  readonly idempotencyKey: string;
  readonly body: Uint8Array;
}

export interface HookInParts {
  /** The URL of the server; undefined when it has none, so that the URLs of hooks are paths. */
  readonly publicUrl: string | undefined;
  /** Returns whether a user is a member who may fire jobs. */
  readonly mayFire: (workspaceId: WorkspaceId, userId: UserId) => boolean;
}

/** A firing, as one worker asks it of another. */
interface AskedFiring {
  readonly hookInId: string;
  readonly key: string | null;
  readonly arguments: readonly string[];
}

/** The answer of the home. */
type Answer =
  | { readonly occurrence: Occurrence }
  | { readonly code: ErrorCode; readonly detail: string }
  | undefined;

/** The most hooks of one job. */
const MAX_HOOKS_OF_JOB = 10;
/** The longest argument that a firing passes on, in characters. */
const MAX_PAYLOAD_CHARS = 8000;
/** How far the time of a signed request may be from now. */
const MAX_SKEW_S = 300;
/** How long the id of a request is remembered. */
const MEMORY_MS = 24 * 3_600_000;
/** The most ids of requests that are remembered for one hook. */
export const MAX_REMEMBERED = 1000;
/** How many old ids one firing forgets. */
const MAX_FORGOTTEN = 10;
/** The most signatures of one request that are compared. A rotation needs two. */
const MAX_SIGNATURES = 10;
/** The most ids that one commit of a deletion removes. */
const MAX_REMOVED = 200;
/** The kind of the removals of hooks that fire jobs. */
const HOOK_IN = 'hook-in';
const BEARER = 'Bearer ';

type HookInContext = Pick<PlaneContext, 'store' | 'cluster' | 'removals'>;
type FiredJobs = Pick<Jobs, 'controlled' | 'fireByHook' | 'onDelete'>;

export class HooksIn {
  readonly #context: HookInContext;
  readonly #jobs: FiredJobs;
  readonly #vault: HookInVault;
  readonly #publicUrl: string;
  readonly #mayFire: HookInParts['mayFire'];
  /** Compared in place of the secret of an unknown hook, so that its refusal takes as long. */
  readonly #decoy = newHookSecret();

  constructor(
    context: HookInContext,
    jobs: FiredJobs,
    vault: HookInVault,
    { publicUrl, mayFire }: HookInParts,
  ) {
    this.#context = context;
    this.#jobs = jobs;
    this.#vault = vault;
    this.#mayFire = mayFire;
    this.#publicUrl = publicUrl?.replace(/(?<!\/)\/+$/, '') ?? '';
    jobs.onDelete((tx, { workspaceId, id }) => this.#removeAll(tx, workspaceId, id));
    context.removals.define(HOOK_IN, (workspaceId, id) => this.#removeSome(workspaceId, id));
    context.cluster.onAsked('fire-by-hook', (asked) => this.#answer(asked as AskedFiring));
  }

  /** Creates a hook that fires a job. Throws `not_found`, `role_too_low` and `quota_exceeded`. */
  create(caller: Principal, jobId: string, name: string | null): CreatedHookIn {
    const { store } = this.#context;
    const { workspaceId, userId } = caller;
    const { homeId } = this.#jobs.controlled(caller, jobId);
    refuseOverQuota(
      { what: 'hooks for each job' },
      MAX_HOOKS_OF_JOB,
      () => store.idsUnder(hookInRecords, workspaceId, jobId).size,
    );
    const id = newId<HookInId>('hookIn');
    const record: HookInRecord = { name, createdBy: userId, createdAt: timestamp() };
    const secret = newHookSecret();
    store.write((tx) => {
      tx.put(hookInRecords, record, workspaceId, jobId, id);
      tx.put(hookInHomes, { workspaceId, jobId, homeId }, SYSTEM, id);
      this.#vault.seal(tx, workspaceId, secretNameOf(homeId, id), secret);
    });
    return { ...this.#shown(jobId, id, record), secret };
  }

  /** Returns the hooks that fire a job, oldest first. Throws `not_found` and `role_too_low`. */
  list(caller: Principal, jobId: string): { readonly items: readonly HookIn[] } {
    const { store } = this.#context;
    const { workspaceId } = caller;
    this.#jobs.controlled(caller, jobId);
    const ids = [...store.idsUnder(hookInRecords, workspaceId, jobId)].sort();
    return {
      items: ids.flatMap((id) => {
        const record = store.get(hookInRecords, workspaceId, jobId, id);
        return record === undefined ? [] : [this.#shown(jobId, id, record)];
      }),
    };
  }

  /** Deletes a hook that fires a job. Throws `not_found` and `role_too_low`. */
  delete(caller: Principal, jobId: string, hookInId: string): void {
    const { store } = this.#context;
    const { workspaceId } = caller;
    const { homeId } = this.#jobs.controlled(caller, jobId);
    if (!store.has(hookInRecords, workspaceId, jobId, hookInId)) throw notFound();
    store.write((tx) => this.#remove(tx, { workspaceId, jobId, homeId }, hookInId));
  }

  #removeAll(tx: Transaction, workspaceId: string, jobId: string): void {
    for (const id of this.#context.store.idsUnder(hookInRecords, workspaceId, jobId)) {
      const home = tx.get(hookInHomes, SYSTEM, id);
      if (home !== undefined) this.#remove(tx, home, id);
    }
  }

  #remove(tx: Transaction, { workspaceId, jobId, homeId }: HookInHome, id: string): void {
    tx.remove(hookInRecords, workspaceId, jobId, id);
    tx.remove(hookInHomes, SYSTEM, id);
    this.#vault.remove(tx, workspaceId, secretNameOf(homeId, id));
    this.#context.removals.add(tx, { kind: HOOK_IN, workspaceId, home: homeId, id });
  }

  /** Removes some ids of the requests to a hook that is deleted. Returns whether none is left. */
  #removeSome(workspaceId: string, id: string): boolean {
    const { store } = this.#context;
    const places = [...store.list(hookInAges, workspaceId, [id], { limit: MAX_REMOVED })];
    if (places.length > 0)
      store.write((tx) => {
        for (const { id: place } of places) forgetOne(tx, workspaceId, id, place);
      });
    return places.length < MAX_REMOVED;
  }

  /**
   * Fires the job of a hook. Resolves with the occurrence once it is on disk; a request whose id is known gets the occurrence of the
   * first request. Rejects with `unauthenticated`, alike for an unknown hook and a wrong secret, with `malformed_json`,
   * `body_too_large`, `job_running`, `not_found`, `role_too_low` when the member who made the hook may not fire jobs any more, and
   * `unavailable` while the job has no home.
   */
  async fire(request: HookRequest): Promise<Occurrence> {
    const { store, cluster } = this.#context;
    store.refreshShared();
    const { hookInId } = request;
    const home = store.get(hookInHomes, SYSTEM, hookInId);
    const secret = home && this.#vault.open(home.workspaceId, secretNameOf(home.homeId, hookInId));
    const isProven = isProvenBy(secret ?? this.#decoy, request);
    if (home === undefined || !isProven) throw unauthenticated();
    const given = request.webhookId === '' ? request.idempotencyKey : request.webhookId;
    const key = given === '' ? null : hash('sha256', given, 'hex');
    const asked: AskedFiring = { hookInId, key, arguments: argumentsOf(request.body) };
    const answers = cluster.owns(home.workspaceId, home.homeId)
      ? [await this.#answer(asked)]
      : await cluster.askOthers('fire-by-hook', asked);
    const answer = answers.find((one) => one != null) as Answer;
    if (answer === undefined)
      throw new AppError('unavailable', 'The job is moving to another process. Try again.');
    if ('occurrence' in answer) return answer.occurrence;
    throw new AppError(answer.code, answer.detail);
  }

  /** Resolves with the outcome of a firing once it is on disk; undefined when this worker is not the home of the job. */
  async #answer(asked: AskedFiring): Promise<Answer> {
    const { store, cluster } = this.#context;
    store.refreshShared();
    const home = store.get(hookInHomes, SYSTEM, asked.hookInId);
    if (home === undefined || !cluster.owns(home.workspaceId, home.homeId)) return undefined;
    try {
      const occurrence = this.#fireHere(home, asked);
      await store.durable();
      return { occurrence };
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      return { code: error.code, detail: error.message };
    }
  }

  #fireHere(
    { workspaceId, jobId }: HookInHome,
    { hookInId, key, arguments: words }: AskedFiring,
  ): Occurrence {
    const { store } = this.#context;
    const known = key === null ? undefined : store.get(hookInFirings, workspaceId, hookInId, key);
    if (known !== undefined) {
      const first: Occurrence = JSON.parse(Buffer.from(known).toString('utf8'));
      return first;
    }
    this.#checkCreator(workspaceId as WorkspaceId, jobId, hookInId);
    const occurrence = this.#jobs.fireByHook(workspaceId as WorkspaceId, jobId, {
      hookInId,
      arguments: words,
    });
    if (key !== null)
      store.write((tx) => {
        tx.put(hookInFirings, Buffer.from(JSON.stringify(occurrence)), workspaceId, hookInId, key);
        tx.mark(hookInAges, workspaceId, hookInId, `${timeText(Date.now())} ${key}`);
        this.#forget(tx, workspaceId, hookInId);
      });
    return occurrence;
  }

  /** A member who has left knows the secret still, and an owner of the workspace may have taken the job over. */
  #checkCreator(workspaceId: WorkspaceId, jobId: string, hookInId: string): void {
    const record = this.#context.store.get(hookInRecords, workspaceId, jobId, hookInId);
    if (record === undefined) throw notFound();
    const { createdBy } = record;
    if (this.#mayFire(workspaceId, createdBy as UserId)) return;
    throw new AppError(
      'role_too_low',
      `${createdBy}, who made the hook, may not fire jobs of the workspace any more. Make another hook in its place.`,
    );
  }

  /** Forgets some ids that are too old or too many. Each firing forgets more than it adds. */
  #forget(tx: Transaction, workspaceId: string, hookInId: string): void {
    const limit = MAX_REMEMBERED + MAX_FORGOTTEN;
    const places = [...this.#context.store.list(hookInAges, workspaceId, [hookInId], { limit })];
    const excess = places.length + 1 - MAX_REMEMBERED; // one is added in this commit
    for (const [at, { id: place }] of places.slice(0, MAX_FORGOTTEN).entries()) {
      if (at >= excess && timeOfText(place) > Date.now() - MEMORY_MS) return;
      forgetOne(tx, workspaceId, hookInId, place);
    }
  }

  #shown(jobId: string, id: string, { name, createdBy, createdAt }: HookInRecord): HookIn {
    const url = `${this.#publicUrl}${pathOf('fireByHook', { hookInId: id })}`;
    return { id, jobId, name, url, createdBy, createdAt };
  }
}

function forgetOne(tx: Transaction, workspaceId: string, hookInId: string, place: string): void {
  tx.remove(hookInAges, workspaceId, hookInId, place);
  tx.remove(hookInFirings, workspaceId, hookInId, place.split(' ')[1] ?? '');
}

/** Removes the way to a hook whose record is about to be removed with its workspace. */
export function unlinkHookIn(tx: Transaction, [, name, , id = '']: readonly string[]): void {
  if (name === hookInRecords.name) tx.remove(hookInHomes, SYSTEM, id);
}

/** The secret belongs to the home of the job, which seals it again when the keyring is rotated. No variable has such a name. */
function secretNameOf(homeId: string, hookInId: string): string {
  return sealedSecretName(homeId, `hook-in:${hookInId}`);
}

/** Returns whether the request has the secret as a bearer token, or a fresh signature by it. Compares in constant time. */
function isProvenBy(secret: string, request: HookRequest): boolean {
  const { authorization, webhookId, webhookTimestamp, webhookSignature, body } = request;
  const isBearer = authorization.startsWith(BEARER) && isEqual(authorization.slice(BEARER.length), secret); // ASCII
  if (webhookSignature === '') return isBearer;
  const isFresh =
    /^\d{1,12}$/.test(webhookTimestamp) &&
    Math.abs(Date.now() / 1000 - Number(webhookTimestamp)) <= MAX_SKEW_S;
  const expected = signatureOf(secret, webhookId, webhookTimestamp, body);
  const isSigned = webhookSignature
    .split(' ', MAX_SIGNATURES)
    .map((signature) => isEqual(signature, expected))
    .includes(true);
  return isBearer || (isFresh && webhookId !== '' && isSigned);
}

function isEqual(given: string, expected: string): boolean {
  return timingSafeEqual(hash('sha256', given, 'buffer'), hash('sha256', expected, 'buffer'));
}

/** Returns the arguments of a firing: `--payload=` and the JSON of the body; none without a body. */
function argumentsOf(body: Uint8Array): readonly string[] {
  if (body.byteLength === 0) return [];
  const text = Buffer.from(body).toString('utf8');
  let json: string;
  try {
    json = JSON.stringify(JSON.parse(text));
  } catch {
    throw new AppError('malformed_json', 'The body is not valid JSON.');
  }
  if (json.length > MAX_PAYLOAD_CHARS)
    throw new AppError(
      'body_too_large',
      `The JSON of the body has more than ${MAX_PAYLOAD_CHARS} characters.`,
    );
  return [`--payload=${json}`];
}

function unauthenticated(): AppError {
  return new AppError(
    'unauthenticated',
    'There is no such hook, or the request has neither its secret nor a valid signature that is less than five minutes old.',
  );
}
