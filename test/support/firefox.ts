/** Headless Firefox for the tests of the notebook's page, which must work in more than Chromium. */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Frame, launch, type Page } from 'puppeteer-core';
import type { Owner, TestServer } from './server-fixture.ts';

const FIREFOX = ['/usr/bin/firefox-esr', '/usr/bin/firefox'];
const executablePath = FIREFOX.find((path) => existsSync(path));

/** Why the tests that need Firefox are skipped; false when there is one. With `CI=true` its absence is a failure. */
export const withoutFirefox: string | false =
  executablePath === undefined && process.env.CI !== 'true'
    ? `there is no Firefox: ${FIREFOX.join(', ')}`
    : false;

/** How long a page may take to show something, also on a busy machine. */
const TIMEOUT_MS = 60_000;

/** Runs in the page, whose types are not those of Node.js. */
const COLLECT_VIOLATIONS = `
  globalThis.violations = [];
  addEventListener('securitypolicyviolation', ({ effectiveDirective, blockedURI }) =>
    violations.push(effectiveDirective + ': ' + blockedURI));`;

/** A page, and its forbidden events. */
export interface FirefoxPage {
  readonly page: Page;
  /** Resolves with the errors and requests to other hosts so far, and the violations of the policy since the page was loaded. */
  complaints(): Promise<string[]>;
}

export interface Firefox {
  /** The folder in which it saves downloads. */
  readonly downloads: string;
  /** Opens the page at this path of the server in a new tab. */
  open(server: Pick<TestServer, 'baseUrl'>, path: string): Promise<FirefoxPage>;
}

/** Resolves with marimo's page: in its frame, or alone when the tab has no place for a frame. */
export async function notebookIn(page: Page): Promise<Frame> {
  const shown = await page.waitForFunction(
    "location.pathname.endsWith('/page/') ? 'alone' : document.querySelector('iframe') && 'framed'",
  );
  if ((await shown.jsonValue()) === 'alone') return page.mainFrame();
  const element = await page.waitForSelector('iframe[title="Notebook"]');
  const frame = await element?.contentFrame();
  assert.ok(frame, 'the page has no frame');
  return frame;
}

/** A browser with an empty profile. It ends with its owner. */
export async function openFirefox(owner: Owner): Promise<Firefox> {
  assert.ok(executablePath !== undefined, `install Firefox: none of ${FIREFOX.join(', ')} exists`);
  const home = mkdtempSync(join(tmpdir(), 'troupe-firefox-'));
  const browser = await launch({
    browser: 'firefox',
    executablePath,
    headless: true,
    protocolTimeout: TIMEOUT_MS,
    env: { ...process.env, HOME: home }, // Firefox refuses a home that is somebody else's
  });
  owner.after(async () => {
    await browser.close();
    rmSync(home, { recursive: true, force: true });
  });
  return {
    downloads: join(home, 'Downloads'),
    async open({ baseUrl }, path) {
      const page = await browser.newPage();
      page.setDefaultTimeout(TIMEOUT_MS);
      await page.setViewport({ width: 1280, height: 1000 });
      // Within a second after an edit, marimo's page asks for confirmation before the browser
      // leaves it.
      page.on('dialog', (dialog) => void dialog.accept());
      const complaints: string[] = [];
      page.on('pageerror', (error) => complaints.push(`error: ${String(error)}`));
      await page.evaluateOnNewDocument(COLLECT_VIOLATIONS);
      page.on('request', (request) => {
        const { protocol, origin } = new URL(request.url());
        if (protocol.startsWith('http') && origin !== baseUrl) complaints.push(`request to ${request.url()}`);
      });
      await page.goto(`${baseUrl}${path}`, { waitUntil: 'domcontentloaded' });
      return {
        page,
        complaints: async () => [...complaints, ...((await page.evaluate('violations')) as string[])],
      };
    },
  };
}
