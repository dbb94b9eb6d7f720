import { type AppError, CATALOGUE } from '#src/base/errors/errors.ts';
import type { BytesReply } from './reply.ts';

/** Returns whether a request without a route comes from a browser that follows a link, and not from a program. */
export function wantsPage(method: string, path: string, accept: string): boolean {
  return method === 'get' && accept.includes('text/html') && !path.startsWith('/api/');
}

/** Returns a page with the problem's title and a link to the notebooks. */
export function problemPage({ code, status }: AppError, path: string): BytesReply {
  const home = '../'.repeat(path.split('/').length - 2) || './'; // a proxy may serve this server below a path
  const title = status === 404 ? 'There is no such page' : CATALOGUE[code].title;
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<style>body { font: 16px/1.5 system-ui, sans-serif; max-width: 40rem; margin: 20vh auto 0; padding: 0 16px; }</style>
</head>
<body>
<h1>${title}</h1>
<p>The address may be misspelt, or the page has moved. <a href="${home}">Go to the notebooks</a></p>
</body>
</html>
`;
  return {
    kind: 'bytes',
    status,
    contentType: 'text/html; charset=utf-8',
    bytes: html,
    headers: {
      'cache-control': 'no-store',
      'content-security-policy':
        "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
    },
  };
}
