/**
 * The room for sessions with a kernel: limits of the server, of a workspace and of each of its members. Work that nobody waits for,
 * such as jobs, comes after people: it takes no room in the seconds after a person was refused, because the person will try again.
 */

import { AppError } from '#src/base/errors/errors.ts';
import { countOf, type NamedLimit, refuseOverQuota } from '#src/base/errors/quota.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { Address } from '#src/runtime/actors/address.ts';
import type { LimitName } from '#storage/records/workspace-limits.ts';

const SESSION_LIMIT: NamedLimit = { name: 'sessions', what: 'live notebook sessions' };
const USER_SESSION_LIMIT: NamedLimit = {
  name: 'sessionsPerUser',
  what: 'live notebook sessions',
  of: 'user',
};

/** After how many seconds a person who was refused may try again. */
const RETRY_AFTER_S = 5;
/** How long a person who was refused comes first: the time for two further tries. */
const FIRST_MS = 2 * RETRY_AFTER_S * 1000;

interface Limit {
  readonly holder: string;
  /** Throws the refusal of the limit. */
  readonly check: () => void;
}

/** The limits of sessions. 0 means no limit. */
interface SessionLimits {
  readonly maxSessions: number;
  readonly limitOf: (
    workspaceId: WorkspaceId,
    name: Extract<LimitName, 'sessions' | 'sessionsPerUser'>,
  ) => number;
}

/** The sessions with a kernel. In a shared turn they are those of all workers. */
interface KernelSessions {
  residentsOfAll(): readonly Address[];
  /** Returns the user who has opened a session. */
  openerOf(session: Address): string | undefined;
}

export class SessionRoom {
  readonly #limitsOfAll: SessionLimits;
  readonly #sessions: KernelSessions;
  /** When people were last refused, by the limit: `server`, a workspace, or a user in it. The latest is the last, and older ones go. */
  readonly #refusedMs = new Map<string, number>();

  constructor(limits: SessionLimits, sessions: KernelSessions) {
    this.#limitsOfAll = limits;
    this.#sessions = sessions;
  }

  /** Throws `at_capacity` or `quota_exceeded` when a limit allows no further session with a kernel. */
  admit(workspaceId: WorkspaceId, userId: string | undefined): void {
    for (const { holder, check } of this.#limits(workspaceId, userId))
      try {
        check();
      } catch (error) {
        this.#noteRefusal(holder);
        throw error;
      }
  }

  /** Throws as `admit` does, and also when the same limit has just refused a person. */
  admitAfterPeople(workspaceId: WorkspaceId, userId: string): void {
    const sinceMs = performance.now() - FIRST_MS;
    for (const { holder, check } of this.#limits(workspaceId, userId)) {
      check();
      if ((this.#refusedMs.get(holder) ?? 0) > sinceMs)
        throw atCapacity('The next room for a session is for people who wait for it.');
    }
  }

  #limits(workspaceId: WorkspaceId, userId: string | undefined): Limit[] {
    const { maxSessions, limitOf } = this.#limitsOfAll;
    const sessions = this.#sessions;
    const ofWorkspace = () => countOf(sessions.residentsOfAll(), workspaceId);
    const ofUser = () =>
      sessions
        .residentsOfAll()
        .filter((session) => session.workspaceId === workspaceId && sessions.openerOf(session) === userId)
        .length;
    return [
      {
        holder: 'server',
        check() {
          if (maxSessions > 0 && sessions.residentsOfAll().length >= maxSessions)
            throw atCapacity(`This server runs at most ${maxSessions} notebook sessions at once.`);
        },
      },
      {
        holder: workspaceId,
        check: () => refuseOverQuota(SESSION_LIMIT, limitOf(workspaceId, 'sessions'), ofWorkspace),
      },
      ...(userId === undefined
        ? []
        : [
            {
              holder: `${workspaceId}/${userId}`,
              check: () =>
                refuseOverQuota(USER_SESSION_LIMIT, limitOf(workspaceId, 'sessionsPerUser'), ofUser),
            },
          ]),
    ];
  }

  #noteRefusal(holder: string): void {
    const nowMs = performance.now();
    this.#refusedMs.delete(holder);
    this.#refusedMs.set(holder, nowMs);
    for (const [known, ms] of this.#refusedMs) {
      if (ms > nowMs - FIRST_MS) break;
      this.#refusedMs.delete(known);
    }
  }
}

function atCapacity(detail: string): AppError {
  return new AppError('at_capacity', detail, { headers: { 'retry-after': String(RETRY_AFTER_S) } });
}
