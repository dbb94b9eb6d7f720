import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium, type Frame, type Locator, type Page } from 'playwright-core';
import type { Api } from '../api.ts';
import { atMost, type Measure, median, spread } from '../measure.ts';
import { startMarimo } from '../peers/marimo.ts';
import { notebookFile } from '../peers/notebook-files.ts';
import { anonymousBytes, cpuMs } from '../processes.ts';
import { type Scenario, Skipped } from '../scenario.ts';
import { expected, plainRequest, Wire } from '../wire.ts';

const CHROMIUM = '/usr/bin/chromium';
const PYTHON =
  process.env.TROUPE_PYTHON ?? join(fileURLToPath(new URL('../../../', import.meta.url)), '.venv/bin/python');
const CODES = [
  'import marimo as mo',
  'n = mo.ui.slider(1, 1000, value=5)\nn',
  'mo.md(f"# {n.value} squared is {n.value ** 2}")',
];
const KIB = 1024;
/** A move of the slider that takes longer has failed. */
const MAX_MOVE_MS = 10_000;

/** How a page is opened and used. */
interface Visit {
  /** Whether marimo's page is in a frame of another one. */
  readonly isFramed: boolean;
  /** Whether the cells have to be run first. */
  readonly runsFirst: boolean;
  readonly moves: number;
}

const OURS = { isFramed: true, runsFirst: false };
const THEIRS = { isFramed: false, runsFirst: false };

/**
 * Measures the page of a notebook and, for comparison, the page of marimo's own server with the
 * same notebook and a warm session.
 */
export const pages: Scenario = {
  name: 'pages',
  title: "the page of a notebook in Chromium, beside marimo's own server in turn, and idle pages",
  limitS: 600,
  async run(stage) {
    if (!existsSync(CHROMIUM)) throw new Skipped(`there is no ${CHROMIUM}`);
    const { api, pid, untilIdle } = await stage.server();
    const { id } = await api.session(CODES);
    await api.run(id, 'c2');
    const marimo = await startMarimo(PYTHON);
    stage.after(() => marimo.end());
    const file = join(marimo.home, 'notebook.py');
    writeFileSync(file, notebookFile(CODES));
    const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
    stage.after(() => browser.close());
    const ours = async () => `http://127.0.0.1:${api.endpoint.port}${await pageUrl(api, id)}`;
    const theirs = async () => `http://127.0.0.1:${marimo.port}/?file=${encodeURIComponent(file)}`;
    const shown = { ours: [] as number[], theirs: [] as number[] };
    const moved = { ours: [] as number[], theirs: [] as number[] };
    await visit(browser, await theirs(), [], [], { ...THEIRS, runsFirst: true, moves: 1 });
    await visit(browser, await ours(), [], [], { ...OURS, moves: 1 });
    const moves = stage.count(20, 4);
    for (let i = 0; i < stage.count(9, 2); i++) {
      await visit(browser, await ours(), shown.ours, moved.ours, { ...OURS, moves });
      await visit(browser, await theirs(), shown.theirs, moved.theirs, { ...THEIRS, moves });
    }
    await browser.close();
    const edits = await editTimes(api, id, stage.count(500, 30));
    await untilIdle();
    const idle = await idlePages(api, pid, id, stage.count(100, 10), stage.quick ? 2_000 : 20_000);
    return [
      spread('page shown, from its address to the last output', shown.ours),
      spread("page shown, marimo's own server", shown.theirs),
      atMost('page shown, to marimo', median(shown.ours) / median(shown.theirs), '×', 1.3),
      spread('slider moved until its dependent output is shown', moved.ours),
      spread("slider moved, marimo's own server", moved.theirs),
      atMost('slider moved, to marimo', median(moved.ours) / median(moved.theirs), '×', 1.5),
      spread('edit of a cell until it is stored and answered', edits, { p50: 20 }),
      ...idle,
    ];
  },
};

async function pageUrl(api: Api, id: string): Promise<string> {
  return (await api.call<{ url: string }>('POST', `/api/v3/notebook-sessions/${id}/pages`, {})).url;
}

/** Opens the notebook's page, moves its slider, and adds the times in milliseconds. A page of marimo's server runs its cells first. */
async function visit(
  browser: Browser,
  url: string,
  shown: number[],
  moved: number[],
  { isFramed, runsFirst, moves }: Visit,
): Promise<void> {
  const page = await browser.newPage();
  const startedAt = performance.now();
  await page.goto(url, { waitUntil: 'commit' });
  const within = isFramed ? await (await page.waitForSelector('iframe')).contentFrame() : null;
  const frame = within ?? page.mainFrame();
  const last = frame.locator('h1', { hasText: 'squared is' }).last();
  if (runsFirst) await runAll(page, last);
  await last.waitFor();
  const thumb = frame.locator('[role="slider"]').first();
  await thumb.waitFor();
  shown.push(performance.now() - startedAt);
  for (let i = 0; i < moves; i++) {
    await thumb.focus(); // a run may have drawn the slider again
    moved.push(await moveTime(frame, i % 2 === 0 ? 'ArrowRight' : 'ArrowLeft'));
  }
  await page.close();
}

/**
 * Clicks "run all stale cells" until the last output appears, because the button has no effect before the page is
 * connected.
 */
async function runAll(page: Page, last: Locator): Promise<void> {
  const button = page.locator('[data-testid="run-button"]:not([disabled])').last();
  while (!(await last.isVisible())) {
    await button.click();
    await sleep(1_000);
  }
}

/**
 * Returns the time from the key to the new text, measured in the page. The page starts to listen before the key is
 * pressed, because it may handle input before other messages. Rejects when the text does not change.
 */
async function moveTime(frame: Frame, key: string): Promise<number> {
  await frame.evaluate(`globalThis.moved = new Promise((resolve, reject) => {
    const textOf = () => [...document.querySelectorAll('h1')].map((one) => one.textContent).find((text) => text.includes('squared is'));
    const before = textOf();
    setTimeout(() => reject(new Error('the slider did not move: ' + before)), ${MAX_MOVE_MS});
    addEventListener('keydown', () => {
      const at = performance.now();
      const look = () => (textOf() === before ? setTimeout(look, 1) : resolve(performance.now() - at));
      look();
    }, { capture: true, once: true });
  }); 0`);
  await frame.page().keyboard.press(key);
  const ms = (await frame.evaluate('globalThis.moved')) as number;
  await sleep(100);
  return ms;
}

/** The cookie and the token of a page. */
async function pageToken(api: Api, id: string): Promise<string> {
  const base = `http://127.0.0.1:${api.endpoint.port}`;
  const opened = await fetch(base + (await pageUrl(api, id)), { redirect: 'manual' });
  const cookie = (opened.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
  const html = await (await fetch(`${base}/n/${id}/page/`, { headers: { cookie } })).text();
  const token = /"authToken":"([^"]+)"/.exec(html)?.[1];
  if (token === undefined) throw new Error('The page has no token.');
  return token;
}

async function editTimes(api: Api, id: string, count: number): Promise<number[]> {
  const token = await pageToken(api, id);
  const wire = await Wire.open(api.endpoint.port);
  const times: number[] = [];
  for (let i = 0; i < count; i++) {
    const changes = [
      { type: 'set-code', cellId: 'c0', code: `import marimo as mo  # ${'x'.repeat(i % 60)}` },
    ];
    const headers = `authorization: Bearer ${token}\r\nmarimo-session-id: s_bench\r\n`;
    const request = plainRequest('POST', `/n/${id}/api/document/transaction`, { changes }, headers);
    const startedAt = performance.now();
    expected(await wire.send(request), 200);
    times.push(performance.now() - startedAt);
  }
  wire.close();
  return times;
}

/** Opens the streams of many pages, which then do nothing. */
async function idlePages(
  api: Api,
  pid: number,
  id: string,
  count: number,
  forMs: number,
): Promise<Measure[]> {
  const token = await pageToken(api, id);
  const left = new AbortController();
  const open = async (name: string) => {
    const response = await fetch(`http://127.0.0.1:${api.endpoint.port}/n/${id}/sse?session_id=${name}`, {
      headers: { authorization: `Bearer ${token}` },
      signal: left.signal,
    });
    const reader = response.body!.getReader();
    await reader.read();
    void (async () => {
      while (!(await reader.read()).done);
    })().catch(() => undefined); // the stream ends with `left`, or with the server, whose figures then show it
  };
  await open('s_first');
  const before = anonymousBytes(pid);
  for (let i = 0; i < count; i++) await open(`s_idle${i}`);
  await sleep(2_000);
  const each = (anonymousBytes(pid) - before) / count / KIB;
  const cpu = cpuMs([pid]);
  await sleep(forMs);
  const used = ((cpuMs([pid]) - cpu) * 1000) / forMs;
  left.abort();
  return [
    atMost(`memory of the server for each idle page, of ${count}`, each, 'KiB', 100),
    atMost(`processor time of the server for ${count} idle pages`, used, 'ms/s'),
  ];
}
