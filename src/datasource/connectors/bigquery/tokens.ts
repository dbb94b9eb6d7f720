/** OAuth access tokens of a Google service account: requested on demand, reused until shortly before they expire. */
import type { Agent } from 'node:http';
import { DatasourceFailure } from '../../failure.ts';
import { memberOf, textMember } from '../http/answer-members.ts';
import { callHttp } from '../http/client.ts';
import { signToken } from '../http/json-web-token.ts';
import type { BigqueryConnection } from './connection.ts';

/** A source of access tokens. */
export interface BigqueryTokens {
  /** Returns a valid token. Throws `authentication` when Google refuses one. */
  current(signal: AbortSignal): Promise<string>;
}

/** The service that gives access tokens. */
export interface TokenService {
  readonly agent: Agent;
  readonly url: URL;
}

const SCOPE = 'https://www.googleapis.com/auth/bigquery';
const GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const HOUR_S = 3600;
const MARGIN_MS = 60_000;

/** Returns a source of tokens by signed JWT (RFC 7523). */
export function accessTokens(
  { agent, url }: TokenService,
  { client_email, private_key }: BigqueryConnection['service_account'],
): BigqueryTokens {
  let token = '';
  let usableUntil = 0;
  return {
    async current(signal) {
      if (Date.now() < usableUntil) return token;
      const now = Math.floor(Date.now() / 1000);
      const claims = { iss: client_email, scope: SCOPE, aud: url.href, iat: now, exp: now + HOUR_S };
      const { status, body } = await callHttp(agent, {
        method: 'POST',
        url,
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({
          grant_type: GRANT,
          assertion: signToken(private_key, {}, claims),
        }).toString(),
        signal,
      });
      const given = textMember(body, 'access_token');
      if (given === undefined) throw new DatasourceFailure(status >= 500 ? 'failed' : 'authentication');
      const seconds = memberOf(body, 'expires_in');
      token = given;
      usableUntil = Date.now() + (typeof seconds === 'number' ? seconds * 1000 - MARGIN_MS : 0);
      return token;
    },
  };
}
