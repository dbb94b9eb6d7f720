// The page of the API: Swagger UI, from its package into dist/docs, with names that change with the content.
import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { named, writePage } from './page-files.mjs';

/**
 * Swagger UI asks a validator on another host unless `validatorUrl` is null. With `queryConfigEnabled`, a link could make the page
 * read another document. The addresses are relative, because the server may be below a path of a proxy. The groups are closed at first:
 * Swagger UI 5.35 stops after a few operations when it has to show more than 128 at once.
 */
const START = `SwaggerUIBundle({
  url: 'api/v3/openapi.json',
  dom_id: '#api',
  deepLinking: true,
  filter: true,
  docExpansion: 'none',
  defaultModelsExpandDepth: 0,
  persistAuthorization: false,
  queryConfigEnabled: false,
  validatorUrl: null,
});
`;

const LICENCES = ['LICENSE', 'NOTICE', 'swagger-ui-bundle.js.LICENSE.txt'];

/** Writes `dist/docs`. Does nothing in a checkout without the package. */
export function writeApiPage(root) {
  const source = join(root, 'node_modules', 'swagger-ui-dist');
  if (!existsSync(source)) return;
  const read = (name) => readFileSync(join(source, name), 'utf8');
  const [style, bundle] = [read('swagger-ui.css'), read('swagger-ui-bundle.js')];
  const files = new Map([
    [named('swagger-ui', 'css', style), style],
    [named('swagger-ui', 'js', bundle), bundle],
    [named('start', 'js', START), START],
  ]);
  const [styleName, bundleName, startName] = [...files.keys()].map((name) => `docs/${name}`);
  files.set(
    'index.html',
    `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Troupe: API</title>
<link rel="stylesheet" href="${styleName}">
</head>
<body>
<div id="api"></div>
<noscript>This page needs JavaScript. The document that it shows is <a href="api/v3/openapi.json">openapi.json</a>.</noscript>
<script src="${bundleName}"></script>
<script src="${startName}"></script>
</body>
</html>
`,
  );
  const folder = join(root, 'dist', 'docs');
  writePage(folder, files);
  // These files are part of a package that this server contains, and are not served.
  for (const name of LICENCES) copyFileSync(join(source, name), join(folder, name));
}
