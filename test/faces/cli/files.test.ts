import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { promisify } from 'node:util';
import type { Notebook } from '#src/contract/wire/notebook.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { IMAGE_CODE, marimoFile } from './notebook-file.ts';
import { MAIN, Shell } from './troupe-process.ts';

const server = await startServer(test);
const { client } = server;
const shell = new Shell(test, server);

const local = (name: string) => join(shell.cwd, name);
const write = (name: string, text: string) => {
  mkdirSync(join(local(name), '..'), { recursive: true });
  writeFileSync(local(name), text);
  return name;
};
const idsTitled = async (title: string) => {
  const ids: string[] = [];
  for await (const notebook of client.notebooks.each({ title }))
    if (notebook.title === title) ids.push(notebook.id);
  return ids;
};

test('files and whole folders are uploaded, listed, downloaded and deleted', async () => {
  write('data/a.csv', 'n\n1\n');
  write('data/deep/b.csv', 'n\n2\n');
  write('data/.git/config', 'not meant');
  symlinkSync('/etc/passwd', local('data/link'));
  await shell.text(['files', 'put', 'data/']);
  const listed = await shell.json<{ path: string }[]>(['files', 'list', '-r', 'data/']);
  assert.deepEqual(
    listed.map(({ path }) => path),
    ['data/a.csv', 'data/deep/b.csv'],
  );
  const { exitCode } = await shell.troupe(['files', 'get', 'data/a.csv', '-o', 'copy.csv']);
  assert.equal(exitCode, 0);
  assert.equal(readFileSync(local('copy.csv'), 'utf8'), 'n\n1\n');
  assert.equal((await shell.troupe(['files', 'get', 'data/deep/b.csv', '-o', '-'])).out, 'n\n2\n');
  await shell.text(['files', 'put', 'copy.csv', '--as', 'elsewhere/c.csv']);
  await shell.text(['files', 'get', 'elsewhere/']);
  assert.equal(readFileSync(local('elsewhere/c.csv'), 'utf8'), 'n\n1\n');
  assert.equal((await shell.troupe(['files', 'delete', 'data/'])).exitCode, 1);
  await shell.text(['files', 'delete', '-r', 'data/', 'elsewhere/']);
  assert.deepEqual(await shell.json(['files', 'list']), []);
  assert.equal((await shell.troupe(['files', 'put', '/etc/hostname'])).exitCode, 2);
});

test('a download to a pipe equals the file byte for byte, and a download that breaks off does not replace the local file', async () => {
  const bytes = Buffer.from([0, 255, 254, 13, 10, 27, 0x80]);
  await client.files.put('binary.bin', bytes);
  const command = `'${process.execPath}' '${MAIN}' files get binary.bin -o - > piped.bin`;
  const env = { ...process.env, ...shell.env };
  await promisify(execFile)('sh', ['-c', command], { cwd: shell.cwd, env });
  assert.deepEqual(readFileSync(local('piped.bin')), bytes);
  write('kept.bin', 'as it was');
  await client.files.put('kept.bin', Buffer.alloc(4 * 1024 * 1024));
  const cut = createServer((request, response) => {
    if (request.url?.includes('prefix=') !== true)
      response.writeHead(200, { 'content-length': '9' }).write('half');
    else
      response.end(
        JSON.stringify({
          items: [
            {
              path: 'kept.bin',
              type: 'file',
              bytes: 9,
              size: 9,
              updatedAt: '2026-01-01T00:00:00.000Z',
              etag: null,
            },
          ],
          nextCursor: null,
        }),
      );
    if (request.url?.includes('prefix=') !== true) setImmediate(() => response.destroy());
  }).listen(0, '127.0.0.1');
  test.after(() => cut.close());
  await once(cut, 'listening');
  const SERVICE_BASE_URL = `http://127.0.0.1:${(cut.address() as AddressInfo).port}`;
  const { exitCode } = await shell.troupe(['files', 'get', 'kept.bin'], { env: { SERVICE_BASE_URL } });
  assert.notEqual(exitCode, 0);
  assert.equal(readFileSync(local('kept.bin'), 'utf8'), 'as it was');
  assert.deepEqual(
    readdirSync(shell.cwd).filter((name) => name.includes('.part')),
    [],
  );
});

test('--with and --fetch accept patterns and targets, and report a missing file without losing the other files', async () => {
  write('tables/a.csv', 'n\n1\n');
  write('tables/b.csv', 'n\n2\n');
  write('tables/c.txt', 'not meant');
  const beside = mkdtempSync(join(tmpdir(), 'troupe-beside-'));
  test.after(() => rmSync(beside, { recursive: true, force: true }));
  writeFileSync(join(beside, 'far.csv'), 'n\n3\n');
  write(
    'globs.py',
    marimoFile({
      sums: 'import glob, os\ntotal = sum(int(open(name).readlines()[1]) for name in glob.glob("tables/*"))',
      plots: [
        'os.makedirs("plots/deep", exist_ok=True)',
        'for _name in ("plots/1.txt", "plots/2.txt", "plots/deep/3.txt"): open(_name, "w").write(str(total))',
      ].join('\n'),
    }),
  );
  const named = ['--with', 'tables/*.csv', '--with', `${beside}/far.csv=tables/`];
  const { exitCode, err } = await shell.troupe([
    ...['run', 'globs.py', ...named, '--fetch', 'plots/*.txt', '--fetch', 'nothing*', '-o', 'globs.md'],
  ]);
  assert.equal(exitCode, 1, err);
  assert.match(err, /stored tables\/\*\.csv \(2 files, 8 bytes\)/);
  assert.match(err, /the notebook has not written nothing\*/);
  assert.equal(readFileSync(local('plots/1.txt'), 'utf8'), '6');
  assert.equal(existsSync(local('plots/deep')), false);
  assert.ok(existsSync(local('globs.md')), 'the report is written all the same');
  utimesSync(join(server.filesDir, 'plots/1.txt'), 1_000_000, 1_000_000);
  const again = await shell.troupe(['run', 'globs.py', '--cells', 'sums', '--fetch', 'plots']);
  assert.equal(again.exitCode, 0, again.err);
  assert.equal(readFileSync(local('plots/deep/3.txt'), 'utf8'), '6');
  assert.match(again.err, /fetched plots\/1\.txt \(1 bytes, not written by this run/);
  for (const path of [`${beside}/far.csv`, 'no-such-file', 'none/*.csv']) {
    const refused = await shell.troupe(['run', 'globs.py', '--with', path]);
    assert.equal(refused.exitCode, 2, refused.err);
  }
});

test('a run uploads data and modules, and downloads the files that the notebook wrote, with a report', async () => {
  write('rows/numbers.csv', 'n\n4\n5\n');
  write(
    'summing.py',
    'from helping import last\ndef total(path):\n    return sum(int(line) for line in last(path))\n',
  );
  write('helping/__init__.py', 'def last(path):\n    return open(path).readlines()[1:]\n');
  write(
    'report.py',
    marimoFile({
      sums: 'import summing\ntotal = summing.total("rows/numbers.csv")',
      _: 'open("total.txt", "w").write(str(total))\nprint("wrote <it>")',
      image: IMAGE_CODE,
    }),
  );
  const { exitCode, err } = await shell.troupe([
    ...['run', 'report.py', '--with', 'rows/', '--with-imports', '--fetch', 'total.txt'],
    ...['-o', 'report.html', '-o', 'executed.ipynb', '-o', 'report.md'],
  ]);
  assert.equal(exitCode, 0, err);
  assert.equal(readFileSync(local('total.txt'), 'utf8'), '9');
  const page = readFileSync(local('report.html'), 'utf8');
  assert.match(page, /<title>report<\/title>/);
  assert.match(page, /wrote &lt;it&gt;/);
  assert.match(page, /<img [^>]*src="data:image\/png;base64,/);
  assert.match(page, /http-equiv="Content-Security-Policy" content="default-src 'none';/);
  assert.doesNotMatch(page, /<script|(?:src|href)="(?!data:)/, 'the page loads nothing');
  const executed = JSON.parse(readFileSync(local('executed.ipynb'), 'utf8'));
  assert.ok(JSON.stringify(executed).includes('wrote <it>'));
  assert.match(readFileSync(local('report.md'), 'utf8'), /summing\.total/);
});

test('--with-imports uploads a package without its hidden files, such as those with credentials', async () => {
  write('app/pack/__init__.py', 'VALUE = 1');
  write('app/pack/words.txt', 'data');
  write('app/pack/.env', 'TOKEN=secret');
  write('app/pack/.cache/token', 'secret');
  write('app/imports.py', marimoFile({ a: 'import pack\npack.VALUE' }));
  const { exitCode, err } = await shell.troupe(['run', 'app/imports.py', '--with-imports']);
  assert.equal(exitCode, 0, err);
  const stored = [];
  for await (const { path } of client.files.walk('pack/')) if (!path.endsWith('.pyc')) stored.push(path);
  assert.deepEqual(stored, ['pack/__init__.py', 'pack/words.txt']);
});

test('no command follows a link of a cloned folder, neither to read nor to write', async () => {
  const home = mkdtempSync(join(tmpdir(), 'troupe-home-'));
  test.after(() => rmSync(home, { recursive: true }));
  writeFileSync(join(home, 'key.py'), 'PRIVATE = "key"');
  writeFileSync(join(home, 'kept'), 'kept');
  mkdirSync(join(home, 'private'));
  writeFileSync(join(home, 'private', '__init__.py'), 'PRIVATE = "package"');
  mkdirSync(local('clone/sub'), { recursive: true });
  mkdirSync(local('clone/.git'));
  symlinkSync(join(home, 'key.py'), local('clone/helper.py'));
  symlinkSync(join(home, 'key.py'), local('clone/linked.py'));
  symlinkSync(join(home, 'private'), local('clone/private'));
  symlinkSync(home, local('clone/out'));
  symlinkSync(join(home, 'kept'), local('clone/report.html'));
  write('clone/a.py', marimoFile({ a: 'import helper' }));
  write('clone/b.py', marimoFile({ a: 'import private' }));
  write(
    'clone/c.py',
    marimoFile({
      a: 'import os\nos.makedirs("out", exist_ok=True)\nopen("out/authorized_keys", "w").close()',
    }),
  );
  const refused = [
    ['run', 'clone/a.py', '--with-imports'],
    ['run', 'clone/b.py', '--with-imports'],
    ['run', 'clone/linked.py'],
    ['run', 'clone/c.py', '-o', 'clone/report.html'],
    ['run', 'clone/c.py', '--output-dir', 'clone/out/pictures', '-o', 'clone/out/new.html'],
    ['files', 'put', 'clone/out'],
    ['files', 'put', 'clone/out/kept', '--as', 'kept'],
    ['files', 'put', 'clone/out/*.py'],
    ['packages', 'add', '-r', 'clone/out/kept'],
    ['debug', 'bundle', '-o', 'clone/out/bundle.json'],
  ];
  for (const args of refused) {
    const { exitCode, err } = await shell.troupe(args);
    assert.equal(exitCode, 2, `${args.join(' ')}: ${err}`);
    assert.match(err, /clone\/\S+ is a link to \S+\. Commands follow no links in this folder/);
  }
  assert.equal((await shell.troupe(['run', 'clone/c.py'])).exitCode, 0);
  const inClone = { cwd: local('clone') };
  for (const args of [
    ['files', 'get', 'out/'],
    ['run', 'c.py', '--fetch', 'out/'],
    ['run', join('..', 'clone', 'linked.py')],
  ]) {
    const { exitCode, err } = await shell.troupe(args, inClone);
    assert.notEqual(exitCode, 0, args.join(' '));
    assert.match(err, /is a link to/);
  }
  const { exitCode } = await shell.troupe(['run', '../helper.py'], { cwd: local('clone/sub') });
  assert.equal(exitCode, 2, 'the whole clone counts, not only the working directory');
  assert.deepEqual(readdirSync(home).sort(), ['kept', 'key.py', 'private']);
  assert.equal(readFileSync(join(home, 'kept'), 'utf8'), 'kept');
  for await (const { path } of client.files.walk('')) assert.doesNotMatch(path, /helper|private|^kept$/);
});

test('running a file again updates its notebook; with --rm a new notebook is made and deleted again', async () => {
  write('again.py', marimoFile({ a: 'x = 1' }));
  assert.match((await shell.troupe(['run', 'again.py'])).err, /imported again\.py as nb_/);
  write('again.py', marimoFile({ a: 'x = 2' }));
  assert.match((await shell.troupe(['run', 'again.py'])).err, /updated again\.py as nb_/);
  const ids = await idsTitled('again');
  assert.equal(ids.length, 1);
  assert.match((await client.notebooks.get(ids[0] ?? '')).serialization.cells[0]?.code ?? '', /x = 2/);
  await shell.troupe(['run', '--rm', 'again.py']);
  assert.deepEqual(await idsTitled('again'), ids);
});

test('with --rm the notebook is deleted even when the run cannot begin', async () => {
  write('early.py', marimoFile({ a: 'x = 1' }));
  for (const wrong of [
    ['--with', 'nothing'],
    ['--cells', 'nothing'],
  ])
    assert.equal((await shell.troupe(['run', '--rm', 'early.py', ...wrong])).exitCode, 2);
  assert.deepEqual(await idsTitled('early'), []);
});

test('a file with the longest possible name can be downloaded', async () => {
  const name = `${'n'.repeat(251)}.csv`;
  await client.files.put(name, Buffer.from('n'));
  await shell.text(['files', 'get', name]);
  assert.equal(readFileSync(local(name), 'utf8'), 'n');
  await client.files.delete(name);
});

test('a report that cannot be made does not lose the other files of a run', async () => {
  write('lasting.py', marimoFile({ a: 'open("lasting.csv", "w").write("n")' }));
  write('browser/chromium', '#!/bin/sh\nexit 1\n');
  chmodSync(local('browser/chromium'), 0o755);
  const env = { PATH: `${local('browser')}:${process.env.PATH}` };
  const args = ['-o', 'new/a.pdf', '-o', 'new/b.html', '--fetch', 'lasting.csv'];
  const { exitCode, err } = await shell.troupe(['run', 'lasting.py', ...args], { env });
  assert.equal(exitCode, 1);
  assert.match(err, /^troupe: The PDF was not made/m);
  assert.deepEqual([existsSync(local('new/b.html')), existsSync(local('lasting.csv'))], [true, true]);
  const early = await shell.troupe(['run', 'lasting.py', '-o', 'browser/chromium/a.html']);
  assert.equal(early.exitCode, 2);
  assert.equal(early.out, '');
});

test('while the notebook of a file has an open session, running the file creates no other notebook', async () => {
  write('open.py', marimoFile({ a: 'x = 1' }));
  const { exitCode } = await shell.troupe(['run', '--keep', 'open.py']);
  assert.equal(exitCode, 0);
  assert.match((await shell.troupe(['run', 'open.py'])).err, /open\.py is open as nb_/);
  assert.equal((await idsTitled('open')).length, 1);
});

test('push and pull use the notebook of the file or the named notebook, and never guess a notebook', async () => {
  write('pushed.py', marimoFile({ a: 'y = 1' }));
  const first = await shell.json<Notebook & { isNew: boolean }>(['notebooks', 'push', 'pushed.py']);
  assert.deepEqual([first.isNew, first.title], [true, 'pushed']);
  await client.notebooks.update(first.id, { expectedUpdatedAt: first.updatedAt, variables: { KEPT: '1' } });
  write('pushed.py', marimoFile({ a: 'y = 2' }));
  const stale = await shell.troupe(['notebooks', 'push', 'pushed.py', '--expected', first.updatedAt]);
  assert.deepEqual([stale.exitCode, /stale_update/.test(stale.err)], [1, true]);
  const second = await shell.json<Notebook & { isNew: boolean }>(['notebooks', 'push', 'pushed.py']);
  assert.deepEqual([second.id, second.isNew, second.variables], [first.id, false, { KEPT: '1' }]);
  write('other.py', marimoFile({ a: 'y = 3' }));
  const renamed = await shell.json<Notebook>(['notebooks', 'push', 'other.py', '--notebook', first.id]);
  assert.deepEqual([renamed.id, renamed.title], [first.id, 'other']);
  write('other.py', '');
  await shell.text(['notebooks', 'pull', 'other.py', '--theirs']);
  assert.match(readFileSync(local('other.py'), 'utf8'), /y = 3/);
  assert.equal((await shell.troupe(['notebooks', 'pull', 'nothing.py'])).exitCode, 1);
  await client.notebooks.create({ title: 'other' });
  const env = { XDG_STATE_HOME: local('nothing-is-remembered') };
  const several = await shell.troupe(['notebooks', 'push', 'other.py'], { env });
  assert.deepEqual([several.exitCode, /Several notebooks/.test(several.err)], [1, true]);
});

test('a file with a title belongs to the notebook of that title', async () => {
  write('titled.py', marimoFile({ a: 'z = 1' }).replace('App(', 'App(app_title="Sales of March", '));
  const { title } = await shell.json<Notebook>(['notebooks', 'push', 'titled.py']);
  assert.equal(title, 'Sales of March');
});
