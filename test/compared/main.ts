/**
 * Opens notebooks in Troupe's page and in the page of marimo's own server, runs all cells, and compares the two pages. It prints
 * the differences as a table of Markdown, for
 * `docs/browser-compared.md`. It is not part of the tests, because it needs minutes, and notebooks
 * from other projects.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { findCorpus, PYTHON } from '#test/corpus/corpus.ts';
import { openBrowser, type TestBrowser } from '#test/support/browser.ts';
import { SeededRandom } from '#test/support/random.ts';
import { scriptOptions } from '#test/support/script-options.ts';
import { type Owner, startServer, type TestServer } from '#test/support/server-fixture.ts';
import { differencesOf, type ShownCell, shownCells } from './shown.ts';

/** Notebooks from other projects. They are named here and not kept in this repository. */
const REPOSITORIES = [
  { name: 'marimo-team/learn', commit: '477e2cbf7c31fc05dcf307b1e9c92c36514a32f3', prefix: '' },
  { name: 'marimo-team/gallery-examples', commit: 'c82951bb75fd8e2945e41951be2573274d54c7b3', prefix: '' },
  { name: 'marimo-team/marimo', commit: '3955fdf90363be561e94fb0052dae4cee58a6a61', prefix: 'examples/' },
] as const;

const USAGE = `Compares notebooks in Troupe's page with marimo's own.

  --repositories FOLDER   git directories FOLDER/OWNER+NAME/repo; without it they are cloned from GitHub
  --count N               how many notebooks in addition to marimo's tutorials (default 30)
  --seed N                of the choice (default 1)
  --only TEXT             only notebooks whose name contains the text`;

const MAX_SETTLING_MS = 90_000;
const MAX_CLICKS = 10;

interface Compared {
  readonly name: string;
  readonly format: 'py' | 'md';
  readonly content: string;
}

interface Listed {
  readonly directory: string;
  readonly path: string;
  readonly lacking: readonly string[];
  readonly source: string;
}

const values = scriptOptions(USAGE, {
  repositories: { type: 'string' },
  count: { type: 'string', default: '30' },
  seed: { type: 'string', default: '1' },
  only: { type: 'string' },
});

const endings: (() => unknown)[] = [];
const owner: Owner = { after: (end) => endings.push(end) };
try {
  await compareAll();
} finally {
  for (const end of endings.reverse()) await end();
}

async function compareAll(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-compared-'));
  owner.after(async () => rmSync(folder, { recursive: true, force: true }));
  const { chosen, lacking } = choose(folder);
  const server = await startServer(owner);
  const browser = await openBrowser(owner);
  const wanted = chosen.filter(({ name }) => values.only === undefined || name.includes(values.only));
  say(`${lacking} notebooks import packages that are missing here. ${wanted.length} are compared.\n`);
  say('| notebook | cells | differences |\n| --- | --- | --- |');
  let equal = 0;
  for (const notebook of wanted) {
    const theirs = await inMarimo(browser, notebook, folder).catch(asProblem);
    const ours = await inTroupe(browser, server, notebook).catch(asProblem);
    if (typeof ours === 'string' || typeof theirs === 'string') {
      say(
        `| ${notebook.name} | | ours: ${typeof ours === 'string' ? escaped(ours) : 'shown'}; marimo: ${typeof theirs === 'string' ? escaped(theirs) : 'shown'} |`,
      );
      continue;
    }
    const found = differencesOf(ours.cells, theirs.cells);
    if (!ours.isSettled) found.push('not settled in time');
    if (!theirs.isSettled) found.push('marimo: not settled in time');
    if (found.length === 0) equal++;
    say(`| ${notebook.name} | ${ours.cells.length} | ${found.map(escaped).join('<br>') || 'none'} |`);
  }
  say(`\n${equal} of ${wanted.length} are equal.`);
}

/**
 * Returns the tutorials, and the notebooks from other projects that import only installed packages.
 */
function choose(folder: string): { readonly chosen: readonly Compared[]; readonly lacking: number } {
  const tutorials = findCorpus()
    .filter(({ name }) => name.startsWith('tutorials/'))
    .map(({ name, path, format }) => ({ name, format, content: readFileSync(path, 'utf8') }));
  const directories = REPOSITORIES.map(({ name, commit, prefix }) => {
    if (values.repositories !== undefined)
      return [join(values.repositories, name.replace('/', '+'), 'repo'), commit, prefix];
    const directory = join(folder, basename(name));
    execFileSync('git', ['clone', '--quiet', '--bare', `https://github.com/${name}`, directory]);
    return [directory, commit, prefix];
  });
  const program = fileURLToPath(new URL('../../../test/compared/notebooks_at.py', import.meta.url));
  const listed: Listed[] = JSON.parse(
    execFileSync(PYTHON, ['-I', program, ...directories.flat()], {
      encoding: 'utf8',
      maxBuffer: 2 ** 28,
      cwd: folder,
    }),
  );
  const random = new SeededRandom(Number(values.seed));
  const usable = listed.filter(({ lacking }) => lacking.length === 0);
  const others: Compared[] = [];
  while (others.length < Number(values.count) && usable.length > 0) {
    const [one] = usable.splice(random.below(usable.length), 1);
    const at = directories.findIndex(([directory]) => directory === one?.directory);
    if (one !== undefined)
      others.push({ name: `${REPOSITORIES[at]?.name}/${one.path}`, format: 'py', content: one.source });
  }
  return { chosen: [...tutorials, ...others], lacking: listed.length - usable.length - others.length };
}

type Shown = { readonly cells: readonly ShownCell[]; readonly isSettled: boolean };

async function inTroupe(browser: TestBrowser, server: TestServer, notebook: Compared): Promise<Shown> {
  const { client } = server;
  const { id } = await client.notebooks.import({ format: notebook.format, content: notebook.content });
  const { environmentId } = await client.executionEnvironments.create();
  await client.notebookSessions.open({ notebookId: id, environmentId });
  const { url } = await client.notebookSessions.page(id);
  const { page } = await browser.openPath(server, url);
  await page.setViewportSize({ width: 1280, height: 1600 });
  const frame = await (await page.waitForSelector('iframe')).contentFrame();
  assert.ok(frame);
  await frame.waitForSelector('[data-cell-id]');
  const { runId } = await client.executions.submit(id, { type: 'all', structuralErrors: 'skip' });
  await client.waitForRun(runId, { signal: AbortSignal.timeout(MAX_SETTLING_MS) }).catch(() => undefined);
  const shown = await shownCells(frame, MAX_SETTLING_MS);
  await page.close();
  await client.notebookSessions.close(id);
  return shown;
}

/** Opens the notebook in a server of marimo of its own, and runs all cells. */
async function inMarimo(browser: TestBrowser, notebook: Compared, folder: string): Promise<Shown> {
  const home = mkdtempSync(join(folder, 'marimo-'));
  const path = join(home, basename(notebook.name));
  writeFileSync(path, notebook.content);
  const port = await freePort();
  const args = [
    // Without this, a notebook with the name of a module would be imported in place of the module.
    '-P',
    '-m',
    'marimo',
    '--yes',
    'edit',
    '--headless',
    '--no-token',
    '--skip-update-check',
    '--no-sandbox',
  ];
  const marimo = spawn(PYTHON, [...args, '--port', String(port), path], {
    stdio: 'ignore',
    cwd: home,
    env: { ...process.env, HOME: home, XDG_CONFIG_HOME: home },
  });
  try {
    const baseUrl = `http://127.0.0.1:${port}`;
    while (!(await fetch(`${baseUrl}/health`).catch(() => undefined))?.ok) {
      assert.equal(marimo.exitCode, null, 'the server of marimo has ended');
      await sleep(100);
    }
    const page: Page = await browser.context.newPage();
    await page.setViewportSize({ width: 1280, height: 1640 });
    await page.goto(baseUrl);
    await page.waitForSelector('[data-cell-id]');
    await runStale(page);
    const shown = await shownCells(page.mainFrame(), MAX_SETTLING_MS);
    await page.close();
    return shown;
  } finally {
    marimo.kill('SIGKILL');
  }
}

/** Clicks "run all stale cells" until cells run: the button does nothing before the page is connected. */
async function runStale(page: Page): Promise<void> {
  const button = page.locator('[data-testid="run-button"]:not([disabled])').last();
  // Markdown is shown before anything has run, so an output does not show that cells have run.
  const hasBegun = `document.querySelector('[data-status="running"], [data-status="queued"]') !== null
    || document.querySelector('[data-status="outdated"]') === null`;
  await sleep(1_000);
  for (let clicks = 0; clicks < MAX_CLICKS && !(await page.evaluate<boolean>(hasBegun)); clicks++) {
    await button.click({ timeout: 5_000 }).catch(() => undefined); // there may be nothing to run
    await sleep(1_000);
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}

/** Returns the first line of an error. The other notebooks are still compared. */
function asProblem(error: unknown): string {
  return String(error).split('\n', 1)[0] ?? '';
}

function escaped(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
