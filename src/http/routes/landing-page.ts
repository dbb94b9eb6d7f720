/** The page at the server's address in a browser: a description of the server, first steps, and every operation. */
import { createHash } from 'node:crypto';
import { VERSION } from '#src/base/install/version.ts';
import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import { cookieIn, cookieNameOf, SIGN_IN_COOKIE } from '../edge/sign-in-cookie.ts';
import { TAGS } from '../openapi/tags.ts';
import { pageHandling } from '../page-files.ts';
import { raw } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';
import type { BrowserRoutesContext } from './browser-routes-context.ts';
import { PAGE_POLICY } from './console.ts';

/**
 * `GET /about` describes the server. For programs, so does `GET /`. In a browser, `GET /` leads to the list of notebooks after
 * signing in, and otherwise to the page for signing in. The description lists `routes`. It needs no token, because the OpenAPI
 * document says the same. `isSession` returns whether a secret belongs to a sign-in.
 */
export function landingPageRoutes(
  { files, publicUrl }: BrowserRoutesContext,
  routes: readonly Route[],
  isSession: (secret: string) => boolean,
): readonly Route[] {
  const home = pageHandling(files, PAGE_POLICY, 'home.html');
  const page = Buffer.from(pageOf(VERSION, routes));
  const headers = {
    'content-security-policy': `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'`,
    'cache-control': 'no-cache',
  };
  const describe = () => raw('text/html; charset=utf-8', page, headers);
  return [
    defineRoute({
      ...OPERATIONS.getHomePage,
      ...home,
      summary: 'Open the list of notebooks in a browser',
      handle(request) {
        const { host, cookie, accept, 'x-forwarded-proto': forwardedProto } = request.headers;
        const name = cookieNameOf(SIGN_IN_COOKIE, { host, forwardedProto }, publicUrl);
        if (isSession(cookieIn(cookie, name) ?? '')) return home.handle(request);
        if (!accept.includes('text/html')) return describe();
        return { kind: 'empty', status: 303, headers: { location: 'sign-in' } };
      },
    }),
    defineRoute({
      ...OPERATIONS.getLandingPage,
      summary: 'Read a description of this server, as a web page',
      tags: ['Server'],
      access: 'public',
      isPage: true,
      isUndocumented: true,
      handle: describe,
    }),
  ];
}

const STYLE = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
h1 { margin: 0; } h1 small { font-size: 1rem; font-weight: 400; opacity: .7; }
h2 { margin-top: 2.5rem; } h3 { margin: 1.5rem 0 .25rem; }
pre { padding: 1rem; overflow-x: auto; border: 1px solid #8886; border-radius: .5rem; }
code { font: .9em ui-monospace, monospace; }
table { width: 100%; border-collapse: collapse; }
td { padding: .25rem .75rem .25rem 0; vertical-align: top; border-top: 1px solid #8884; overflow-wrap: anywhere; }
td:first-child { width: 50%; }
td b { display: inline-block; min-width: 4.5em; }
@media (max-width: 40rem) { td, td:first-child { display: block; width: auto; } td + td { border: 0; padding-bottom: .5rem; } }
`;
const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64');

function pageOf(version: string, routes: readonly Route[]): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Troupe</title>
<style>${STYLE}</style>
</head>
<body>
<h1>Troupe <small>${escaped(version)}</small></h1>
<p>A server for notebooks, agents and data: reactive Python notebooks on the marimo kernel, durable runs, live events, and
database connections whose credentials never leave it. It is used through its interface or the command <code>troupe</code>.</p>
<p><a href="sign-in">Sign in</a> to see and open your notebooks. <a href="console">Open the console</a> to see its work, live: sessions, runs, actors and the commands that they refuse.</p>
<h2>Begin</h2>
<p>The first start printed an access token and a workspace id, and keeps both in <code>bootstrap.json</code> in its data
directory. On the machine of the server nothing else has to be set:</p>
<pre><code>troupe doctor              # does everything work here?
troupe run analysis.py     # run a notebook: a marimo file, an .ipynb, or Markdown
troupe help                # everything else</code></pre>
<p>From elsewhere, and in programs:</p>
<pre><code>export SERVICE_BASE_URL=…  SERVICE_ACCESS_TOKEN=…  SERVICE_WORKSPACE_ID=…
curl -H "Authorization: Bearer $SERVICE_ACCESS_TOKEN" "$SERVICE_BASE_URL/api/v3/me"</code></pre>
<h2>Interface</h2>
<p><a href="docs">The page of the API</a> shows every operation with its parameters and shapes, and sends requests. It is
made from the <a href="/api/v3/openapi.json">OpenAPI document</a>, which generators of clients read. <a href="/readyz">Readiness</a> says whether the server is ready.</p>
${Object.keys(TAGS)
  .map((tag) => sectionOf(tag, routes))
  .join('\n')}
</body>
</html>
`;
}

function sectionOf(tag: string, routes: readonly Route[]): string {
  const rows = routes.filter(({ tags }) => tags[0] === tag).map(rowOf);
  if (rows.length === 0) return '';
  return `<h3>${escaped(tag)}</h3>\n<p>${escaped(TAGS[tag] ?? '')}</p>\n<table>\n${rows.join('\n')}\n</table>`;
}

function rowOf({ method, path, summary }: Route): string {
  const shown = path.replace(/:(\w+)/g, '{$1}');
  return `<tr><td><code><b>${method}</b> ${escaped(shown)}</code></td><td>${escaped(summary)}</td></tr>`;
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => ENTITIES[character]!);
}
