import { AppError } from '#src/base/errors/errors.ts';
import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import type { CommandLineSignIns } from '#src/people/auth/command-line-sign-ins.ts';
import { AuthThrottle, type ThrottleLimits } from '../edge/auth-throttle.ts';
import { publicOriginOf } from '../edge/origin.ts';
import { json, noContent, ok } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';
import type { BrowserRoutesContext } from './browser-routes-context.ts';

const INTERVAL_S = 2;
/**
 * How many requests programs at one address may send: ten waiting programs there may ask every two seconds. Without a limit,
 * strangers could ask without end, and each question is a shared turn of all workers.
 */
const REQUESTS: ThrottleLimits = {
  free: 200,
  perS: 10,
  refusal: 'Too many requests of command lines that sign in came from your address.',
};

const COMMON = {
  tags: ['Identity'],
  isUndocumented: true,
  ignoresKeys: true,
  audited: true,
  sharedTurn: true,
} as const;

/**
 * Signing in with the command line: the program asks, and a person confirms the request in a
 * browser.
 */
export function commandLineSignInRoutes(
  { audit, publicUrl, workers }: BrowserRoutesContext,
  commandLines: CommandLineSignIns,
): readonly Route[] {
  const throttle = new AuthThrottle(undefined, workers);
  const requests = new AuthThrottle(undefined, workers, REQUESTS);
  /** Refuses a request before its shared turn. */
  const prepare = ({ remoteAddress }: { readonly remoteAddress: string }) => {
    requests.count(remoteAddress);
    return undefined;
  };
  /**
   * Returns the result of `use`. A wrong code is counted against the client address that sent it.
   */
  const withCode = <T>(address: string, use: () => T): T => {
    try {
      return use();
    } catch (error) {
      const isGuess = error instanceof AppError && error.code === 'not_found';
      throw isGuess ? throttle.recordFailure(address, error) : error;
    }
  };
  return [
    defineRoute({
      ...OPERATIONS.beginCommandLineSignIn,
      ...COMMON,
      summary: 'Begin to sign in with a command line',
      access: 'public',
      errors: ['too_many_attempts'],
      prepare,
      handle({ body, headers, remoteAddress }) {
        const begun = commandLines.begin({ machine: body.machine, address: remoteAddress });
        const base =
          publicUrl?.replace(/(?<!\/)\/+$/, '') ?? publicOriginOf(headers.host, headers['x-forwarded-proto']);
        return json(201, { ...begun, url: `${base}/sign-in?command-line`, intervalS: INTERVAL_S });
      },
    }),
    defineRoute({
      ...OPERATIONS.fetchCommandLineSignIn,
      ...COMMON,
      summary: 'Fetch the outcome of signing in with a command line',
      access: 'public',
      errors: ['too_many_attempts'],
      prepare,
      handle({ body, remoteAddress, requestId }) {
        const outcome = commandLines.fetch(body.secret);
        if (outcome.status !== 'confirmed') return ok({ status: outcome.status });
        const { token, secret, workspaceId, principal } = outcome;
        const entry = { action: 'token.create', target: token.id, outcome: 'done' } as const;
        audit.note({ principal, address: remoteAddress, requestId }, entry);
        const { userId, expiresAt } = token;
        return ok({ status: 'confirmed', token: secret.reveal(), userId, workspaceId, expiresAt });
      },
    }),
    defineRoute({
      ...OPERATIONS.getCommandLineSignIn,
      ...COMMON,
      summary: 'Read which command line waits with a code',
      access: 'token',
      sharedTurn: false,
      errors: ['not_found', 'too_many_attempts'],
      handle: ({ params, remoteAddress }) =>
        ok(withCode(remoteAddress, () => commandLines.read(params.code))),
    }),
    defineRoute({
      ...OPERATIONS.decideCommandLineSignIn,
      ...COMMON,
      summary: 'Confirm or refuse a command line',
      access: { action: 'token.create' },
      sameOrigin: true,
      errors: ['not_found', 'too_many_attempts'],
      handle({ principal, params, body, remoteAddress, requestId }) {
        withCode(remoteAddress, () => commandLines.decide(principal, params.code, body.confirm));
        const action = body.confirm ? 'command-line.confirm' : 'command-line.refuse';
        audit.note(
          { principal, address: remoteAddress, requestId },
          { action, target: principal.userId, outcome: 'done' },
        );
        return noContent();
      },
    }),
  ];
}
