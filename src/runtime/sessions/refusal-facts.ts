/**
 * The people whom refusals of sessions name: the user whose work keeps a session busy, and the user who closed a session.
 */
import type { Closer } from '#machines/any-session.ts';
import type { RefusalFacts } from '../actors/actor-definition.ts';

/** The work of a session. */
export interface Occupation {
  readonly kind: 'run' | 'code' | 'check' | 'element';
  /** The run; undefined for work that has no record. */
  readonly runId: string | undefined;
  /** The user who asked for the work; undefined when the user is not known. */
  readonly by: string | undefined;
}

const WORDS = {
  code: 'code that was sent to it',
  check: 'the check of new code',
  element: 'a change of a UI element',
} as const;

/** Returns the facts of a refusal with `session_busy` or `session_closed`. */
export function refusalFacts(
  code: string,
  occupation: Occupation | undefined,
  { closedBy }: Closer,
): RefusalFacts | undefined {
  if (code === 'session_closed' && closedBy != null)
    return { text: `${closedBy} has closed it.`, members: { closedBy } };
  if (code !== 'session_busy' || occupation === undefined) return undefined;
  const { kind, runId, by } = occupation;
  const work = kind === 'run' ? `the run ${runId}` : WORDS[kind];
  return {
    text: `It is busy with ${work}${by === undefined ? '' : `, for ${by}`}.`,
    members: {
      busyWith: {
        kind,
        ...(runId === undefined ? {} : { runId }),
        ...(by === undefined ? {} : { createdBy: by }),
      },
    },
  };
}
