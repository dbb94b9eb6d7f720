import type { TokenHolder } from '#src/base/caller/principal.ts';
import { AppError, notFound } from '#src/base/errors/errors.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import { networkOf } from '#src/base/net/ip-address.ts';
import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import type { BrowserSignIns } from '#src/people/auth/browser-sign-ins.ts';
import type { ProviderSignIn } from '#src/people/auth/provider/provider-sign-in.ts';
import { AuthThrottle } from '../edge/auth-throttle.ts';
import { publicOriginOf } from '../edge/origin.ts';
import { ATTEMPT_COOKIE, cookieIn, cookieNameOf, SIGN_IN_COOKIE, setCookie } from '../edge/sign-in-cookie.ts';
import { pageHandling } from '../page-files.ts';
import { type EmptyReply, json, ok } from '../reply/reply.ts';
import { type AnyRouteRequest, defineRoute, type Route } from '../route.ts';
import type { BrowserRoutesContext } from './browser-routes-context.ts';
import { PAGE_POLICY } from './console.ts';

/**
 * The common part of the routes that begin and end sign-ins. Their answers are meant for one browser, so idempotency keys are
 * ignored.
 */
const COMMON = {
  tags: ['Identity'],
  access: 'token',
  isUndocumented: true,
  sameOrigin: true,
  ignoresKeys: true,
  audited: true,
  sharedTurn: true,
} as const;

/** The common part of the routes that lead a browser to the identity provider and back. */
const BROWSER_STEP = {
  tags: ['Identity'],
  access: 'public',
  isUndocumented: true,
  audited: true,
} as const;

/** Signing in and out with a browser. `provider` is absent on a server without an identity provider. */
export function signInRoutes(
  { files, audit, publicUrl, log, workers }: BrowserRoutesContext,
  signIns: BrowserSignIns,
  provider: ProviderSignIn | undefined,
): readonly Route[] {
  const throttle = new AuthThrottle(undefined, workers);
  const addresses = new WeakMap<object, string | undefined>();
  /**
   * Records the start or the end of a session in the audit of the workspaces that its user can
   * enter.
   */
  const note = (
    action: string,
    target: string,
    { userId, tokenId }: TokenHolder,
    { remoteAddress, requestId }: Pick<AnyRouteRequest, 'remoteAddress' | 'requestId'>,
  ) => {
    for (const workspaceId of signIns.workspacesOf({ userId, tokenId })) {
      const principal = { workspaceId: workspaceId as WorkspaceId, userId, tokenId };
      audit.note({ principal, address: remoteAddress, requestId }, { action, target, outcome: 'done' });
    }
  };
  /**
   * Returns the part of a route that ends the sign-ins that `end` chooses, and records `action` in the audit.
   */
  const ending = (action: string, end: (holder: TokenHolder) => void) => ({
    // The address at the provider is found before the shared turn, in the worker that carries out the request.
    prepare(request: EndingRequest) {
      if (provider === undefined || !signIns.isOfPerson(request.holder)) return undefined;
      return provider.signOutUrl(request.holder.userId, `${baseOf(request.headers)}/sign-in`).then((url) => {
        addresses.set(request, url);
      });
    },
    handle(request: EndingRequest) {
      const { holder, headers, remoteAddress, requestId } = request;
      note(action, holder.tokenId, holder, { remoteAddress, requestId });
      end(holder);
      const forget = { 'set-cookie': cookie(headers, SIGN_IN_COOKIE, '', 0) };
      return json(200, { next: addresses.get(request) ?? null }, forget);
    },
  });
  return [
    defineRoute({
      ...OPERATIONS.getSignInPage,
      ...pageHandling(files, PAGE_POLICY, 'home.html'),
      summary: 'Sign in with a browser',
    }),
    defineRoute({
      ...OPERATIONS.getSignInOptions,
      summary: 'Read how people sign in with a browser',
      tags: ['Identity'],
      access: 'public',
      isUndocumented: true,
      handle: () => ok({ provider: provider?.name ?? null }),
    }),
    defineRoute({
      ...OPERATIONS.beginProviderSignIn,
      ...BROWSER_STEP,
      summary: 'Begin to sign in with the identity provider',
      async handle({ headers, query }) {
        if (provider === undefined) throw notFound();
        try {
          const { url, kept } = await provider.begin(`${baseOf(headers)}/sign-in/callback`, query.to);
          return redirect(url, { 'set-cookie': cookie(headers, ATTEMPT_COOKIE, kept, provider.attemptS) });
        } catch (error) {
          if (!(error instanceof Error) || error.name !== 'ProviderFailure') throw error;
          log.warn({ err: error }, 'the identity provider cannot be used');
          return redirect('../sign-in?refused=failed');
        }
      },
    }),
    defineRoute({
      ...OPERATIONS.completeProviderSignIn,
      ...BROWSER_STEP,
      summary: 'Sign in with the answer of the identity provider',
      errors: ['unavailable', 'too_many_attempts'],
      async handle({ headers, query, remoteAddress, requestId }) {
        if (provider === undefined) throw notFound();
        // A second header `set-cookie`. Its first letter has another case, because an object can have each name only once.
        const forget = { 'Set-Cookie': cookie(headers, ATTEMPT_COOKIE, '', 0) };
        const refuse = (reason: string) => redirect(`../sign-in?refused=${reason}`, forget);
        const attempt = provider.attemptIn(cookieIn(headers.cookie, nameOf(headers, ATTEMPT_COOKIE)) ?? '');
        if (attempt === undefined || query.state !== attempt.state) return refuse('expired');
        if (query.error === 'access_denied') return refuse('cancelled');
        const callback = new URL(`${baseOf(headers)}/sign-in/callback`);
        for (const [name, value] of Object.entries(query)) callback.searchParams.set(name, value);
        try {
          const { secret } = await provider.complete(
            callback,
            attempt,
            networkOf(remoteAddress),
            (userId, { id }) =>
              note(
                'sign-in',
                id,
                { userId, tokenId: id, scopes: [], isBound: true },
                { remoteAddress, requestId },
              ),
          );
          const session = cookie(headers, SIGN_IN_COOKIE, secret.reveal(), signIns.maxS);
          return redirect(destinationOf(attempt.to, baseOf(headers)), { 'set-cookie': session, ...forget });
        } catch (error) {
          const { name, because }: { name?: unknown; because?: unknown } = Object(error);
          if (name !== 'AccountRefused' && name !== 'ProviderFailure') throw error;
          log.warn(
            { err: error, address: remoteAddress, requestId },
            'somebody could not sign in with the identity provider',
          );
          const wrong = new AppError(
            'unauthenticated',
            'The answer of the identity provider does not prove who you are.',
          );
          const counted = throttle.recordFailure(remoteAddress, wrong);
          if (counted !== wrong) throw counted;
          return refuse(typeof because === 'string' ? because : 'failed');
        }
      },
    }),
    defineRoute({
      ...OPERATIONS.signIn,
      ...COMMON,
      summary: 'Exchange an access token for a session of a browser',
      tokensOnly: true,
      errors: ['no_workspace'],
      handle({ holder, headers, remoteAddress, requestId }) {
        const { id, secret } = signIns.begin(holder);
        note('sign-in', id, holder, { remoteAddress, requestId });
        return {
          kind: 'empty',
          status: 204,
          headers: { 'set-cookie': cookie(headers, SIGN_IN_COOKIE, secret.reveal(), signIns.maxS) },
        };
      },
    }),
    defineRoute({
      ...OPERATIONS.signOut,
      ...COMMON,
      summary: 'End the session of a browser',
      whileFull: true,
      ...ending('sign-out', (holder) => signIns.end(holder)),
    }),
    defineRoute({
      ...OPERATIONS.signOutEverywhere,
      ...COMMON,
      summary: 'End all sessions of the user in browsers',
      whileFull: true,
      ...ending('sign-out-everywhere', (holder) => signIns.endAll(holder)),
    }),
  ];

  function baseOf({ host = '', 'x-forwarded-proto': forwardedProto = '' }: Headers): string {
    return publicUrl ?? publicOriginOf(host, forwardedProto);
  }

  function nameOf({ host = '', 'x-forwarded-proto': forwardedProto = '' }: Headers, name: string): string {
    return cookieNameOf(name, { host, forwardedProto }, publicUrl);
  }

  function cookie(headers: Headers, name: string, value: string, maxAgeS: number): string {
    const { host = '', 'x-forwarded-proto': forwardedProto = '' } = headers;
    return setCookie(name, value, { host, forwardedProto }, { publicUrl, maxAgeS: Math.floor(maxAgeS) });
  }
}

type Headers = Readonly<Record<string, string>>;

/** A request that ends sign-ins. */
interface EndingRequest extends Pick<AnyRouteRequest, 'remoteAddress' | 'requestId' | 'headers'> {
  readonly holder: TokenHolder;
}

/**
 * Returns the address to open after signing in. The result is a page of this server, also for a link that names another one.
 */
function destinationOf(to: string, base: string): string {
  const home = `${base}/`;
  if (!to.startsWith('/') || !URL.canParse(to, home)) return home;
  const { origin, pathname, search, href } = new URL(to, home);
  const isOurs = origin === new URL(home).origin && !pathname.startsWith('//');
  return isOurs && `${pathname}${search}`.length <= MAX_DESTINATION_LENGTH ? href : home;
}

const MAX_DESTINATION_LENGTH = 2000;

function redirect(location: string, headers: Headers = {}): EmptyReply {
  return { kind: 'empty', status: 303, headers: { location, ...headers } };
}
