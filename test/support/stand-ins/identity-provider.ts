/** A real provider of OpenID Connect on a socket (`oidc-provider`), with people whom tests let in, move between groups and remove. */
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import Provider from 'oidc-provider';
import type { Owner } from '../server-fixture.ts';

export interface Person {
  readonly groups: readonly string[];
  readonly name?: string;
  readonly emailVerified?: boolean;
}

interface ForcedAnswer {
  readonly status: number;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

export const CLIENT_ID = 'troupe';
export const CLIENT_SECRET = 'secret-of-the-client-at-the-provider';

export class TestIdentityProvider {
  readonly issuer: string;
  /** The people by their mail address, which they also use to log in. */
  readonly people = new Map<string, Person>();
  /** Requests to the provider, such as `POST /token`. */
  readonly requests: string[] = [];
  #provider: Provider | undefined;
  #isDown = false;
  readonly #forced = new Map<string, ForcedAnswer>();

  private constructor(server: http.Server) {
    this.issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on('request', (req, res) => {
      const path = req.url?.split('?')[0] ?? '';
      this.requests.push(`${req.method} ${path}`);
      const forced = this.#forced.get(path);
      if (forced !== undefined) res.writeHead(forced.status, forced.headers).end(forced.body);
      else if (this.#isDown || this.#provider === undefined) res.writeHead(503).end();
      else this.#provider.callback()(req, res);
    });
  }

  static async start(owner: Owner): Promise<TestIdentityProvider> {
    const server = http.createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    owner.after(async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    });
    return new TestIdentityProvider(server);
  }

  /**
   * Lets the server at this address sign people in. `logout`: whether the provider offers to end its session. `claimsInIdToken`:
   * whether the ID token has the data about a person, so that nobody asks for them at `/me`.
   */
  register(baseUrl: string, { logout = true, claimsInIdToken = true } = {}): void {
    this.#provider = new Provider(this.issuer, {
      clients: [
        {
          client_id: CLIENT_ID,
          client_secret: CLIENT_SECRET,
          redirect_uris: [`${baseUrl}/sign-in/callback`],
          post_logout_redirect_uris: [`${baseUrl}/sign-in`],
          grant_types: ['authorization_code', 'refresh_token'],
        },
      ],
      claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'groups'] },
      conformIdTokenClaims: !claimsInIdToken,
      scopes: ['openid', 'email', 'profile', 'offline_access'],
      issueRefreshToken: () => true,
      rotateRefreshToken: true,
      cookies: { keys: ['key of the cookies of the test provider'] },
      features: { devInteractions: { enabled: true }, rpInitiatedLogout: { enabled: logout } },
      findAccount: (_: unknown, id: string) => {
        const person = this.people.get(id);
        if (person === undefined) return undefined;
        const { groups, name = id, emailVerified = true } = person;
        const claims = { sub: id, email: id, email_verified: emailVerified, name, groups };
        return { accountId: id, claims: () => claims };
      },
    });
  }

  set isDown(isDown: boolean) {
    this.#isDown = isDown;
  }

  /** Gives this answer to every request to a path, such as `/token`, in place of the real one; none ends this. */
  force(path: string, answer?: ForcedAnswer): void {
    if (answer === undefined) this.#forced.delete(path);
    else this.#forced.set(path, answer);
  }

  /**
   * Logs a person in at the address to which the server leads, as a browser without scripts would. Resolves with the address to
   * which the provider leads back.
   */
  async logIn(start: string, login: string): Promise<string> {
    const jar = new Map<string, string>();
    const visit = async (url: string, form?: Record<string, string>): Promise<string> => {
      const response = await fetch(url, {
        method: form === undefined ? 'GET' : 'POST',
        redirect: 'manual',
        headers: { cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; ') },
        ...(form === undefined ? {} : { body: new URLSearchParams(form) }),
      });
      for (const line of response.headers.getSetCookie()) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
        jar.set(name, value);
      }
      const location = response.headers.get('location');
      if (location === null) throw new Error(`${response.status}: ${await response.text()}`);
      return new URL(location, url).href;
    };
    let next = await visit(start);
    for (const prompt of ['login', 'consent']) {
      if (!next.includes('/interaction/')) break;
      next = await visit(next, { prompt, login, password: 'any' });
      next = await visit(next);
    }
    return next;
  }
}
