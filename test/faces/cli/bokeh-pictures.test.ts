// tier: whole, because it draws plots in a confined browser; static-page.test.ts and widgets.test.ts stay in the gate
/** Pictures of plots of bokeh in reports. Their scripts come from the package in the notebook's environment. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { MAX_SCRIPT_BYTES, readBokehScripts } from '#src/faces/cli/run/bokeh-scripts.ts';
import { withoutBrowser } from '#test/support/browser.ts';
import { pythonWithLibraries } from '#test/support/python-with-libraries.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { marimoFile } from './notebook-file.ts';
import { Shell } from './troupe-process.ts';

const { python, absence } = pythonWithLibraries();
const canShutIn =
  spawnSync('unshare', ['--user', '--map-root-user', '--mount', '--net', 'true']).status === 0;
const skip = absence || withoutBrowser || (canShutIn ? false : 'this machine cannot confine a browser');
const server = await startServer(test, {
  TROUPE_LOG_LEVEL: 'debug',
  ...(absence ? {} : { TROUPE_PYTHON: python }),
});
const shell = new Shell(test, server);
const { client } = server;

const VERSION = '3.9.2';
const PLOT = `import marimo as mo
from bokeh.plotting import figure
plot = figure(title="Sales <2026>", height=300, width=600, border_fill_color="#ff00ff")
plot.xaxis.axis_label = "Month"
plot.line([1, 2], [3, 4])
plot`;

async function report(cells: Readonly<Record<string, string>>, ...names: string[]) {
  writeFileSync(join(shell.cwd, 'report.py'), marimoFile(cells));
  const env = { PATH: process.env.PATH ?? '' };
  const outputs = names.flatMap((name) => ['-o', name]);
  const ran = await shell.troupe(['run', 'report.py', ...outputs], { env });
  assert.equal(ran.exitCode, 0, ran.err);
  return { ...ran, files: names.map((name) => readFileSync(join(shell.cwd, name))) };
}

/** Returns the descriptions and the PNGs of a page's pictures. */
function picturesIn(page: Buffer): { readonly alt: string; readonly png: Buffer }[] {
  return [...page.toString().matchAll(/<img alt="([^"]*)" src="data:image\/png;base64,([^"]+)">/g)].map(
    ([, alt = '', data = '']) => ({ alt, png: Buffer.from(data, 'base64') }),
  );
}

/** Prints the size of the part of a picture that one colour encloses, to the nearest ten pixels, and the number of colours at its right end. */
const MEASURE = `import json, sys
from PIL import Image, ImageChops
picture = Image.open(sys.stdin.buffer).convert("RGB")
away = ImageChops.difference(picture, Image.new("RGB", picture.size, "#ff00ff")).convert("L")
left, top, right, bottom = away.point(lambda value: 255 * (value == 0)).getbbox() or (0, 0, 99, 99)
last = picture.crop((right - 44, top + 4, right - 4, bottom - 4))
print(json.dumps({"width": round(right - left, -1), "height": round(bottom - top, -1), "colours": len(last.getcolors(4000))}))`;

function measured(png: Buffer): {
  readonly width: number;
  readonly height: number;
  readonly colours: number;
} {
  return JSON.parse(execFileSync(python, ['-c', MEASURE], { input: png }).toString());
}

test('a report has sharp pictures of whole plots of bokeh without tools, and titles and axes describe them', {
  skip,
}, async () => {
  const wide = `wide = figure(title="Wide" * 200, width=1400, height=700, border_fill_color="#ff00ff")
wide.scatter([1, 2], [3, 4])
mo.hstack([wide, mo.md("beside")])`;
  const slider = 'from bokeh.models import Slider\nSlider(start=0, end=9, value=3, title="Level")';
  const { err, files } = await report({ plot: PLOT, wide, slider }, 'report.html', 'report.pdf');
  assert.doesNotMatch(err, /has only the text/);
  // Both files show one page, which is drawn once: the session could end while it is drawn again.
  const exports = server.log.filter(
    (line) => line.msg === 'request' && JSON.stringify(line).includes('/export'),
  );
  assert.equal(exports.length, 1);
  const [page = Buffer.of(), pdf = Buffer.of()] = files;
  const pictures = picturesIn(page);
  assert.deepEqual(
    pictures.map(({ alt }) => alt.split('\n')[0]?.replace(/p\d+/, 'p1')),
    ['Sales &lt;2026&gt;; Month', 'Wide'.repeat(125), "Slider(id='p1', ...)"],
  );
  const [plot, small] = pictures.map(({ png }) => measured(png));
  assert.deepEqual(plot, { width: 1200, height: 600, colours: 1 });
  assert.deepEqual([small?.width, small?.height], [600, 300]);
  assert.equal(pdf.toString('latin1').match(/\/Subtype \/Image/g)?.length, 3);
  assert.doesNotMatch(page.toString(), /<script/);
});

test('plots of another version or with unknown scripts, and other plots in their cell, are shown as text, and a warning gives the reason', {
  skip,
}, async () => {
  const changed = (from: string, to: string) => `mo.Html(mo.as_html(plot).text.replace("${from}", "${to}"))`;
  const cells = {
    plot: PLOT,
    older: changed(`bokeh-${VERSION}`, 'bokeh-3.9.1'),
    other: changed(`bokeh-${VERSION}`, `bokeh-unknown-${VERSION}`),
    elsewhere: changed('cdn.bokeh.org', '127.0.0.1:1'),
    beside: 'mo.hstack([plot, mo.Html(mo.as_html(plot).text.replace("3.9.2", "3.9.1"))])',
  };
  const { err, files } = await report(cells, 'other.html');
  const kinds = ['older', 'other', 'elsewhere', 'beside']
    .map((name) => `${name}: a plot of bokeh`)
    .join(', ');
  assert.ok(err.includes(`only the text of ${kinds}: the notebook's environment`), err);
  assert.match(err, /does not have bokeh-3\.9\.1\.min\.js\./);
  assert.equal(picturesIn(files[0] ?? Buffer.of()).length, 1);
});

test('the scripts come from the kernel, up to 8 MiB in all, and no other answer of the kernel stops a report', {
  skip: absence,
}, async (t) => {
  const { id: notebookId } = await client.notebooks.import({ format: 'py', content: marimoFile({}) });
  const { environmentId } = await client.executionEnvironments.create({});
  await client.notebookSessions.open({ notebookId, environmentId });
  await client.notebookSessions.waitUntilReady(notebookId);
  const names = [`bokeh-${VERSION}`, `bokeh-gl-${VERSION}`];
  const urls = names.map((name) => `https://cdn.bokeh.org/bokeh/release/${name}.min.js`);
  const read = async (change: string) => {
    const { errors } = await client.code.execute(notebookId, change);
    assert.deepEqual(errors, []);
    const html = urls.join(' ');
    const { scripts, fault } = await readBokehScripts({ client, notebookId, html, signal: t.signal });
    return [[...scripts].map(([url, { length }]) => [url, length]), fault];
  };
  const write = (sizes: readonly number[]) => `import bokeh, pathlib
folder = pathlib.Path("package/server/static/js")
folder.mkdir(parents=True, exist_ok=True)
for part, size in zip(["bokeh", "bokeh-gl"], ${JSON.stringify(sizes)}):
    (folder / f"{part}.min.js").write_bytes(b'x' * size)
bokeh.__file__ = str(pathlib.Path("package/__init__.py").absolute())`;
  const most = [MAX_SCRIPT_BYTES - 5, 5];
  assert.deepEqual(await read(write(most)), [urls.map((url, i) => [url, most[i]]), undefined]);
  const tooLarge = [[], 'the scripts of bokeh could not be read (they are too large)'];
  assert.deepEqual(await read(write([MAX_SCRIPT_BYTES - 4, 5])), tooLarge);
  const absent = [[], `the notebook's environment does not have ${names[0]}.min.js`];
  assert.deepEqual(
    await read('import sys\npackage = sys.modules.pop("bokeh")\nsys.modules["bokeh"] = None'),
    absent,
  );
  for (const sent of ['b"no JSON"', 'b"[" + b" " * (1 << 25) + b"]"', 'b"null"', 'b\'{"__proto__": 1}\'']) {
    const [scripts, fault] = await read(
      `import gzip\npack = getattr(gzip, "pack", gzip.compress)\ngzip.pack = pack\ngzip.compress = lambda *_: pack(${sent})`,
    );
    assert.deepEqual(scripts, [], sent);
    assert.match(String(fault), /could not be read|does not have bokeh/);
  }
  await client.notebookSessions.close(notebookId);
  const after = await readBokehScripts({ client, notebookId, html: urls.join(' '), signal: t.signal });
  assert.match(after.fault ?? '', /could not be read/);
});
