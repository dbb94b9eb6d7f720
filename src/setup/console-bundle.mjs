// The console's files: bundles src/faces/console into dist/console, with names that change with the content.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { drawCharts } from './chart-pictures.mjs';
import { named, writePage } from './page-files.mjs';

const COMMON = {
  bundle: true,
  minify: true,
  write: false,
  platform: 'browser',
  target: ['chrome123', 'firefox128', 'safari17.5'],
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'none',
  logLevel: 'silent', // the error holds the messages
};

/** Writes `dist/console`. `compiled` is the folder in which the statecharts are compiled. Rejects with esbuild's error. */
export async function bundleConsole(root) {
  const source = join(root, 'src', 'faces', 'console');
  if (!existsSync(join(source, 'main.tsx'))) return;
  const { build } = await import('esbuild');
  const files = new Map();
  const frame = await framePage(build, source);
  const frameName = named('frame', 'html', frame.page);
  files.set(frameName, frame.page);
  const charts = JSON.stringify(await drawCharts(root));
  const chartsName = named('charts', 'json', charts);
  files.set(chartsName, charts);
  const { outputFiles, metafile } = await build({
    ...COMMON,
    absWorkingDir: root,
    entryPoints: { main: join(source, 'main.tsx'), home: join(source, 'home', 'main.tsx') },
    outdir: join(root, 'dist', 'console'),
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    assetNames: '[name]-[hash]',
    format: 'esm',
    splitting: true,
    metafile: true,
    define: { FRAME_PAGE: JSON.stringify(frameName), CHART_PICTURES: JSON.stringify(chartsName) },
  });
  for (const { path, contents } of outputFiles) files.set(basename(path), contents);
  const console = readFileSync(join(source, 'index.html'), 'utf8');
  const [icon] = /<link rel="icon".*>/.exec(console);
  const home = readFileSync(join(source, 'home', 'home.html'), 'utf8').replace('<!-- icon -->', () => icon);
  files.set('index.html', indexPage(console, filesOf(metafile, 'src/faces/console/main.tsx')));
  files.set('home.html', indexPage(home, filesOf(metafile, 'src/faces/console/home/main.tsx')));
  // The same page, below the address of a notebook.
  files.set(
    'notebook.html',
    indexPage(home, filesOf(metafile, 'src/faces/console/home/main.tsx'), '../../console'),
  );
  writePage(join(root, 'dist', 'console'), files, { [frameName]: frame.hash });
}

/** Returns the page in which the HTML of outputs is shown, with its only script inside, and the hash of that script. */
async function framePage(build, source) {
  const { outputFiles } = await build({
    ...COMMON,
    entryPoints: [join(source, 'frame', 'frame.ts')],
    format: 'iife',
  });
  const script = outputFiles[0].text.trim();
  if (script.includes('</script')) throw new Error('The script of the frame ends its own element.');
  const style = readFileSync(join(source, 'frame', 'frame.css'), 'utf8');
  const page = readFileSync(join(source, 'frame', 'frame.html'), 'utf8')
    .replace('<!-- style -->', () => `<style>${style}</style>`)
    .replace('<!-- script -->', () => `<script>${script}</script>`);
  return { page, hash: `sha256-${createHash('sha256').update(script).digest('base64')}` };
}

/** Returns the names of the files that a page loads, by its entry point. */
function filesOf({ outputs }, wanted) {
  const [path, { cssBundle, imports }] = Object.entries(outputs).find(
    ([, { entryPoint }]) => entryPoint === wanted,
  );
  const preloads = imports
    .filter(({ kind }) => kind === 'import-statement')
    .map(({ path: chunk }) => basename(chunk));
  return { script: basename(path), style: basename(cssBundle), preloads };
}

function indexPage(page, { script, style, preloads }, folder = 'console') {
  const links = preloads.map((name) => `<link rel="modulepreload" href="${folder}/${name}">`);
  return page.replace('<!-- files -->', () =>
    [
      `<link rel="stylesheet" href="${folder}/${style}">`,
      ...links,
      `<script type="module" src="${folder}/${script}"></script>`,
    ].join('\n'),
  );
}
