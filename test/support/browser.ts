/**
 * Headless Chromium for the tests of pages. Every page reports forbidden events: errors, violations of its
 * content security policy, and requests to other hosts.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BrowserContext, chromium, type FrameLocator, type Page, type Request } from 'playwright-core';
import type { Owner, TestServer } from './server-fixture.ts';

const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const executablePath = CHROMIUM.find((path) => existsSync(path));

/** Why the tests that need a browser are skipped; false when there is one. With `CI=true` its absence is a failure. */
export const withoutBrowser: string | false =
  executablePath === undefined && process.env.CI !== 'true'
    ? `there is no Chromium: ${CHROMIUM.join(', ')}`
    : false;

const ARGS = [
  '--no-sandbox', // tests may run as root
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** How long a page may take to show something. It is a limit for a hang: a page of marimo takes a minute on one busy processor. */
const TIMEOUT_MS = 150_000;

export const WIDE = { width: 1280, height: 800 };
export const NARROW = { width: 390, height: 844 };

/** A browser with an empty profile. It ends with its owner. */
export async function openBrowser(owner: Owner): Promise<TestBrowser> {
  assert.ok(executablePath !== undefined, `install Chromium: none of ${CHROMIUM.join(', ')} exists`);
  const profile = mkdtempSync(join(tmpdir(), 'troupe-browser-'));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath,
    args: ARGS,
    headless: true,
    viewport: WIDE,
  });
  owner.after(async () => {
    await context.close();
    rmSync(profile, { recursive: true, force: true });
  });
  context.setDefaultTimeout(TIMEOUT_MS);
  return new TestBrowser(context);
}

/** A page, and its forbidden events. */
export interface WatchedPage {
  readonly page: Page;
  /** Errors, violations of the policy, and requests to other hosts, as they happen. */
  readonly complaints: string[];
}

/** The options for opening a page. */
export interface OpenOptions {
  readonly token?: string;
  /** Called before the console is loaded. */
  readonly prepare?: (page: Page) => Promise<unknown>;
}

export class TestBrowser {
  readonly context: BrowserContext;

  constructor(context: BrowserContext) {
    this.context = context;
  }

  /** Opens the console in a new page. */
  open(
    server: Pick<TestServer, 'baseUrl'>,
    hash = '',
    options: Pick<OpenOptions, 'prepare'> = {},
  ): Promise<WatchedPage> {
    return this.openPath(server, `/console${hash}`, options);
  }

  /** Opens the page at this path of the server in a new page. */
  async openPath(
    { baseUrl }: Pick<TestServer, 'baseUrl'>,
    path: string,
    { prepare }: Pick<OpenOptions, 'prepare'> = {},
  ): Promise<WatchedPage> {
    const page = await this.context.newPage();
    await prepare?.(page);
    const complaints: string[] = [];
    page.on('pageerror', (error) => complaints.push(`error: ${error.message}`));
    page.on('console', (message) => {
      if (message.type() === 'error' && !isAnswer(message.text()))
        complaints.push(`console: ${message.text()}`);
    });
    const left = (request: Request) => {
      const { protocol, origin } = new URL(request.url());
      // A request that a policy has blocked never left the browser.
      const isBlocked = request.failure()?.errorText === 'csp';
      if (protocol.startsWith('http') && origin !== baseUrl && !isBlocked)
        complaints.push(`request to ${request.url()}`);
    };
    page.on('requestfinished', left);
    page.on('requestfailed', left);
    await page.goto(`${baseUrl}${path}`);
    return { page, complaints };
  }

  /** Opens the console and signs in. */
  async signIn(
    server: TestServer,
    hash = '',
    { token = server.owner.token, ...options }: OpenOptions = {},
  ): Promise<WatchedPage> {
    const opened = await this.open(server, hash, options);
    await opened.page.getByLabel('Access token').fill(token);
    await opened.page.getByRole('button', { name: 'Sign in' }).click();
    await opened.page.getByRole('navigation').waitFor({ state: 'attached' });
    return opened;
  }
}

/** Returns marimo's page within the page of a notebook. */
export function notebookIn(page: Page): FrameLocator {
  return page.frameLocator('iframe[title="Notebook"]');
}

/** The cell of a notebook in the page. */
export const cellOf = (page: Page, id: string) => notebookIn(page).locator(`#cell-${id}`);

/** The output of a cell in the page. */
export const outputOf = (page: Page, id: string) => notebookIn(page).locator(`#output-${id}`);

/** Chromium also reports refused requests as errors, and tests cause some on purpose. */
function isAnswer(text: string): boolean {
  return text.startsWith('Failed to load resource: the server responded with a status of');
}
