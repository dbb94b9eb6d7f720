/**
 * The identity provider with which people sign in. It speaks OpenID Connect with PKCE, state and nonce, by
 * `openid-client`. This file sends all requests to the provider, and loads the package for the first one.
 */

import { readFileSync } from 'node:fs';
import type * as OpenIdClient from 'openid-client';
import { Secret } from '#src/base/caller/secret.ts';
import { OperatorError, systemFailure } from '#src/base/errors/operator-error.ts';
import { importPackage } from '#src/base/install/set-up-module.ts';
import { cutText } from '#src/base/text/cut-text.ts';

type Library = typeof OpenIdClient;
type Claims = Readonly<Record<string, unknown>>;

/** The settings of the provider. */
export interface ProviderSettings {
  readonly oidcIssuer: string | undefined;
  readonly oidcClientId: string | undefined;
  readonly oidcClientSecretFile: string | undefined;
  readonly oidcScopes: string;
  /** Further query parameters of the sign-in address. */
  readonly oidcParameters: string;
  readonly oidcUserClaim: string;
  readonly oidcGroupsClaim: string;
  /** Rows such as `group=workspace:role`. */
  readonly oidcRoles: readonly string[];
  readonly oidcName: string;
  readonly oidcCheckS: number;
}

/** The data of a sign-in that the browser keeps until the provider sends it back. */
export interface SignInAttempt {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** The person that the provider names, and the tokens with which it can be asked about them again. */
export interface ProvenPerson {
  readonly subject: string;
  readonly claims: Claims;
  readonly refreshToken: Secret;
  readonly idToken: Secret | undefined;
}

/** The provider no longer knows the person, or has ended their sign-in. */
export class PersonGone extends Error {
  override readonly name = 'PersonGone';
}

/** The provider could not be asked, or its answer does not prove who the person is. */
export class ProviderFailure extends Error {
  override readonly name = 'ProviderFailure';
  /** If the provider has too many requests: how long it must not be asked again. Undefined otherwise. */
  readonly pauseMs: number | undefined;
  /** The new refresh token, if the provider has already replaced the one that was sent. */
  readonly renewed: Secret | undefined;

  constructor(
    message: string,
    {
      pauseMs,
      renewed,
      ...options
    }: ErrorOptions & { readonly pauseMs?: number | undefined; readonly renewed?: Secret | undefined } = {},
  ) {
    super(message, options);
    this.pauseMs = pauseMs;
    this.renewed = renewed;
  }
}

/** A request to the provider may take this long. */
const TIMEOUT_S = 10;
/** The most bytes that an answer may have once it is decompressed. The library has no limit, so an endless answer would fill the memory. */
const MAX_ANSWER_BYTES = 1024 * 1024;
/** The pause for a provider that has too many requests and names no pause. */
const PAUSE_MS = 30_000;
/** A longer pause would use up the time for which sessions continue without an answer. */
const MAX_PAUSE_MS = 5 * 60_000;

export class IdentityProvider {
  readonly issuer: string;
  readonly name: string;
  readonly #clientId: string;
  readonly #secret: Secret | undefined;
  readonly #settings: ProviderSettings;
  #connected: Promise<{ readonly library: Library; readonly config: OpenIdClient.Configuration }> | undefined;

  private constructor(
    issuer: string,
    clientId: string,
    secret: Secret | undefined,
    settings: ProviderSettings,
  ) {
    this.issuer = issuer;
    this.name = settings.oidcName;
    this.#clientId = clientId;
    this.#secret = secret;
    this.#settings = settings;
  }

  /** Returns the provider of the settings; undefined when they name none. Throws `OperatorError`. */
  static of(settings: ProviderSettings): IdentityProvider | undefined {
    const { oidcIssuer, oidcClientId, oidcClientSecretFile } = settings;
    if (oidcIssuer === undefined) return undefined;
    if (oidcClientId === undefined)
      throw new OperatorError(
        'TROUPE_OIDC_ISSUER is set, and TROUPE_OIDC_CLIENT_ID is not.',
        'Register this server at the identity provider, and set the client id that the provider gives.',
      );
    const secret = oidcClientSecretFile === undefined ? undefined : readSecret(oidcClientSecretFile);
    return new IdentityProvider(oidcIssuer, oidcClientId, secret, settings);
  }

  /** Resolves with the address of the provider's sign-in, and the attempt that its answer must match. */
  async begin(redirectUri: string): Promise<{ readonly url: string; readonly attempt: SignInAttempt }> {
    const { library, config } = await this.#connect();
    const attempt = {
      state: library.randomState(),
      nonce: library.randomNonce(),
      verifier: library.randomPKCECodeVerifier(),
    };
    const url = library.buildAuthorizationUrl(config, {
      ...Object.fromEntries(new URLSearchParams(this.#settings.oidcParameters)),
      redirect_uri: redirectUri,
      scope: this.#settings.oidcScopes,
      state: attempt.state,
      nonce: attempt.nonce,
      code_challenge: await library.calculatePKCECodeChallenge(attempt.verifier),
      code_challenge_method: 'S256',
    });
    return { url: url.href, attempt };
  }

  /**
   * Resolves with the person whom the provider's answer proves. `callback` is the address to which the provider sent the browser.
   * Rejects with `ProviderFailure`.
   */
  async complete(callback: URL, { state, nonce, verifier }: SignInAttempt): Promise<ProvenPerson> {
    const { library, config } = await this.#connect();
    try {
      const tokens = await library.authorizationCodeGrant(config, callback, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      });
      return await this.#person(library, config, tokens, undefined);
    } catch (error) {
      throw failureOf(error);
    }
  }

  /**
   * Resolves with the provider's present data about a person. Rejects with `ProviderFailure` when the provider does
   * not answer. Rejects with `PersonGone` when it no longer renews the sign-in, or when it refuses the person's data
   * to the token that it has just issued.
   */
  async renew(subject: string, refreshToken: Secret): Promise<ProvenPerson> {
    const { library, config } = await this.#connect();
    let tokens: Awaited<ReturnType<typeof library.refreshTokenGrant>> | undefined;
    try {
      tokens = await library.refreshTokenGrant(config, refreshToken.reveal());
      return await this.#person(library, config, tokens, { subject, refreshToken });
    } catch (error) {
      if (error instanceof PersonGone) throw error;
      const isRefused =
        tokens === undefined
          ? error instanceof library.ResponseBodyError && error.error === 'invalid_grant'
          : responseOf(error)?.status === 401;
      if (isRefused) throw new PersonGone('The provider no longer renews the sign-in.', { cause: error });
      // The old refresh token is used up. The next attempt needs the new one.
      const renewed = tokens?.refresh_token;
      throw failureOf(error, renewed === undefined ? undefined : new Secret(renewed));
    }
  }

  /** Resolves with the address at which the provider ends its own session; undefined when it offers none. */
  async signOutUrl(idToken: Secret | undefined, returnTo: string): Promise<string | undefined> {
    const { library, config } = await this.#connect();
    if (config.serverMetadata().end_session_endpoint === undefined) return undefined;
    return library.buildEndSessionUrl(config, {
      post_logout_redirect_uri: returnTo,
      ...(idToken === undefined ? {} : { id_token_hint: idToken.reveal() }),
    }).href;
  }

  /** Reads the person from an answer with tokens. The groups may be in the ID token or come from the user endpoint. */
  async #person(
    library: Library,
    config: OpenIdClient.Configuration,
    tokens: OpenIdClient.TokenEndpointResponse & OpenIdClient.TokenEndpointResponseHelpers,
    known: { readonly subject: string; readonly refreshToken: Secret } | undefined,
  ): Promise<ProvenPerson> {
    const inToken = tokens.claims();
    const subject = known?.subject ?? inToken?.sub;
    if (subject === undefined) throw new ProviderFailure('The provider named no subject.');
    if (inToken !== undefined && inToken.sub !== subject)
      throw new PersonGone('The provider has renewed the sign-in of another person.');
    const isComplete =
      inToken !== undefined &&
      claimIn(inToken, this.#settings.oidcGroupsClaim) !== undefined &&
      inToken[this.#settings.oidcUserClaim] !== undefined;
    const offersMore = config.serverMetadata().userinfo_endpoint !== undefined;
    const more =
      isComplete || !offersMore ? {} : await library.fetchUserInfo(config, tokens.access_token, subject);
    const refreshToken =
      tokens.refresh_token === undefined ? known?.refreshToken : new Secret(tokens.refresh_token);
    if (refreshToken === undefined)
      throw new ProviderFailure(
        'The provider returned no refresh token. The server needs one to notice that a person has left. Allow refresh tokens for this client at the provider.',
      );
    return {
      subject,
      claims: { ...inToken, ...more },
      refreshToken,
      idToken: tokens.id_token === undefined ? undefined : new Secret(tokens.id_token),
    };
  }

  /** A failed discovery is tried again with the next request. */
  #connect() {
    this.#connected ??= this.#discover().catch((error: unknown) => {
      this.#connected = undefined;
      throw failureOf(error);
    });
    return this.#connected;
  }

  async #discover() {
    const library = await importPackage<Library>('openid-client');
    const issuer = new URL(this.issuer);
    const authentication =
      this.#secret === undefined ? library.None() : library.ClientSecretBasic(this.#secret.reveal());
    const config = await library.discovery(issuer, this.#clientId, undefined, authentication, {
      timeout: TIMEOUT_S,
      [library.customFetch]: boundedFetch,
      ...(issuer.protocol === 'http:' ? { execute: [library.allowInsecureRequests] } : {}),
    });
    return { library, config };
  }
}

/** Does the same as `fetch`, but reading an answer of more than `MAX_ANSWER_BYTES` fails. */
async function boundedFetch(url: string, options: OpenIdClient.CustomFetchOptions): Promise<Response> {
  const response = await fetch(url, options as RequestInit);
  if (response.body === null) return response;
  let left = MAX_ANSWER_BYTES;
  const bounded = new TransformStream<Uint8Array, Uint8Array>({
    transform(piece, controller) {
      left -= piece.byteLength;
      if (left >= 0) controller.enqueue(piece);
      else controller.error(new ProviderFailure(`The provider sent more than ${MAX_ANSWER_BYTES} bytes.`));
    },
  });
  return new Response(response.body.pipeThrough(bounded), response);
}

function readSecret(file: string): Secret {
  let text: string;
  try {
    text = readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw systemFailure(`The secret of the client at the identity provider (${file}) cannot be read`, error);
  }
  if (text === '')
    throw new OperatorError(
      `The file ${file} is empty.`,
      'Put the secret of the client at the identity provider into it.',
    );
  return new Secret(text);
}

/** Returns an error that contains nothing from the provider or the browser except codes of the protocol. */
function failureOf(error: unknown, renewed?: Secret): Error {
  if (error instanceof ProviderFailure || error instanceof PersonGone) return error;
  const { error: code, message }: { error?: unknown; message?: unknown } = Object(error);
  const reason =
    typeof code === 'string' && /^[a-z_]{1,60}$/.test(code) ? code : cutText(String(message), 0, 200);
  return new ProviderFailure(`The identity provider did not answer, or refused: ${reason}`, {
    cause: error,
    pauseMs: pauseAfter(responseOf(error)),
    renewed,
  });
}

/** Returns the answer of the provider that an error of the library is about. */
function responseOf(error: unknown): Response | undefined {
  const { response, cause }: { response?: unknown; cause?: unknown } = Object(error);
  return [response, cause].find((one) => one instanceof Response);
}

/** Returns the pause that an answer "too many requests" asks for; undefined for other answers. */
function pauseAfter(response: Response | undefined): number | undefined {
  if (response === undefined) return undefined;
  const asked = response.headers.get('retry-after');
  if (response.status !== 429 && !(response.status === 503 && asked !== null)) return undefined;
  const text = asked ?? '';
  const pauseMs = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isNaN(pauseMs) ? PAUSE_MS : Math.min(Math.max(pauseMs, 0), MAX_PAUSE_MS);
}

/**
 * Returns the value of a claim, such as `groups`. If no claim has the name, its dots lead into objects: Keycloak uses
 * `realm_access.roles`.
 */
export function claimIn(claims: Readonly<Record<string, unknown>>, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  let value: unknown = claims;
  for (const part of name.split('.')) {
    if (!isObject(value) || !Object.hasOwn(value, part)) return undefined;
    value = value[part];
  }
  return value;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
