/** Presses the parts of marimo's page one after the other, in Chromium. */
import assert from 'node:assert/strict';
import type { Frame, Page } from 'playwright-core';
import { cellOf, type TestBrowser } from './browser.ts';
import { openNotebook } from './notebook-fixture.ts';
import { eventually } from './processes.ts';
import type { TestServer } from './server-fixture.ts';

/**
 * In the page: `press` presses the element and resolves with true once anything has changed, was asked for, opened or copied. Nothing
 * hovers over the element, so that no hint appears. `seen` gathers the addresses that were opened and the texts that tell of a failure.
 */
const SCRIPT = `(() => {
  const seen = window.seen = { opened: [], failures: [], downloads: 0 };
  let happened = () => {};
  window.open = (url) => { seen.opened.push(String(url)); happened(); return null; };
  const follow = HTMLAnchorElement.prototype.click;
  HTMLAnchorElement.prototype.click = function () { seen.downloads++; happened(); follow.call(this); };
  const ask = window.fetch;
  window.fetch = (...args) => { happened(); return ask(...args); };
  const find = (node) => {
    const text = node.textContent ?? '';
    if (/Failed to|Not carried out/.test(text)) seen.failures.push(text.slice(0, 200));
  };
  new MutationObserver((changes) => {
    for (const { addedNodes, type, target } of changes)
      if (type === 'characterData') find(target); else addedNodes.forEach(find);
    happened();
  }).observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
  window.press = (element) => new Promise((resolve) => {
    const late = setTimeout(() => resolve(false), 20000);
    const init = { bubbles: true, cancelable: true, button: 0, pointerType: 'mouse', view: window };
    for (const type of ['pointerdown', 'mousedown', 'pointerup', 'mouseup'])
      element.dispatchEvent(new (type.startsWith('p') ? PointerEvent : MouseEvent)(type, init));
    happened = () => { clearTimeout(late); resolve(true); };
    element.click();
  });
})()`;

/** Tells buttons from each other: those of two cells that do the same are one. */
const KEY = `(e) => [e.ariaLabel, e.dataset.testid, e.textContent.trim().slice(0, 40), e.title,
  [...e.querySelectorAll('svg')].map((one) => one.getAttribute('class'))].join('|')`;

/** Where entries of menus and of the palette are. */
const ENTRY = ':is([role=dialog], [role=menu]) :is([cmdk-item], [role=menuitem], [role=menuitemcheckbox])';

/** Buttons of the dependency graph that bring something into view: nothing changes when it is there already. */
const MAY_REST = /^(?:fit view\||\|{4}lucide lucide-map-pin|\|\|(?:Vertical|Horizontal) Tree)/;

/** Presses buttons and entries of a notebook's page, and collects the failures that the page shows. */
export class Pressing {
  readonly #page: Page;
  readonly frame: Frame;
  /** The failures so far, each with the label of the part that was pressed last. */
  readonly problems: string[] = [];
  readonly pressed = new Set<string>();
  #label = '';

  private constructor(page: Page, frame: Frame) {
    this.#page = page;
    this.frame = frame;
    const labels = new WeakMap<object, string>();
    page.on('request', (request) => labels.set(request, this.#label));
    page.on('response', (response) => {
      if (response.status() >= 400)
        this.problems.push(`${labels.get(response.request())}: ${response.status()} ${response.url()}`);
    });
  }

  /** `page` shows a notebook with a cell `id`. */
  static async begin(page: Page, id: string): Promise<Pressing> {
    await cellOf(page, id).locator('.cm-content').click(); // keys reach the frame only once it has the focus
    const frame = page.frames().find((one) => one.url().endsWith('/page/'));
    assert.ok(frame !== undefined, 'the page shows the notebook in a frame');
    await frame.evaluate(SCRIPT);
    return new Pressing(page, frame);
  }

  /** Presses the visible element that matches the selector and has the key. */
  async press(key: string, selector: string): Promise<void> {
    this.#label = key;
    this.pressed.add(key);
    const done = await this.frame.evaluate<boolean | null>(`(() => {
      const found = [...document.querySelectorAll(${JSON.stringify(selector)})]
        .find((e) => e.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }) && (${KEY})(e) === ${JSON.stringify(key)});
      return found === undefined ? null : press(found);
    })()`);
    if (done === false && !MAY_REST.test(key)) this.problems.push(`${key}: nothing happens`);
    await this.collect();
  }

  /** Gathers the failures that the page has shown. */
  async collect(): Promise<void> {
    for (const text of await this.frame.evaluate<readonly string[]>('seen.failures.splice(0)'))
      this.problems.push(`${this.#label}: ${text}`);
  }

  /** Returns the keys of the visible, enabled elements that match the selector. */
  keys(selector: string): Promise<readonly string[]> {
    return this.frame.evaluate<readonly string[]>(
      `[...new Set([...document.querySelectorAll(${JSON.stringify(selector)})]
        .filter((e) => e.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }) && !e.disabled && e.ariaDisabled !== 'true').map(${KEY}))]`,
    );
  }

  /** Presses each button that is visible now and was not pressed before. */
  async pressButtons(): Promise<void> {
    for (const key of await this.keys('button')) {
      if (this.pressed.has(key)) continue;
      await this.press(key, 'button');
      await this.rest();
    }
  }

  /** Presses each entry of the menu that the opener opens, and the first entry of each menu below it. */
  async pressEntries(opener: string): Promise<void> {
    // A menu that is still closing takes the press for its own, so the opener is pressed until its entries are there.
    const open = () =>
      eventually(`${opener} opens its menu`, async () => {
        if ((await this.keys(ENTRY)).length > 0) return true;
        await this.frame.evaluate(`press(document.querySelector(${JSON.stringify(opener)}))`);
        const appears = this.frame.locator(ENTRY).first().waitFor({ timeout: 5_000 });
        return appears.then(
          () => true,
          () => false,
        );
      });
    await open();
    const entries = await this.keys(ENTRY);
    await this.rest();
    assert.ok(entries.length > 2, `${opener} has entries`);
    for (const entry of entries) {
      await open();
      await this.press(entry, ENTRY);
      const below = (await this.keys(ENTRY)).filter(
        (key) => !this.pressed.has(key) && !entries.includes(key),
      );
      if (below.length > 0) await this.press(below[0]!, ENTRY);
      await this.rest();
      if (/Helper panel|developer panel/.test(entry)) await this.pressButtons();
    }
  }

  /** Closes menus and dialogs, and leaves the view of the app, because that has no editor. */
  async rest(): Promise<void> {
    const isOpen = `[...document.querySelectorAll('[role=dialog], [role=alertdialog], [role=menu]')]
      .some((e) => e.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }))`;
    for (let times = 0; await this.frame.evaluate<boolean>(isOpen); times++) {
      assert.ok(times < 20, `${this.#label} opens something that Escape does not close`);
      await this.frame.evaluate(
        `(document.activeElement ?? document.body).dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true, cancelable: true }));
        new Promise((resolve) => setTimeout(resolve, 50))`, // it leaves with an animation
      );
    }
    const isApp = `![...document.querySelectorAll('.cm-editor')].some((e) => e.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }))`;
    if (await this.frame.evaluate<boolean>(isApp)) {
      await this.#page.keyboard.press('Control+.');
      await this.frame.locator('.cm-editor').first().waitFor();
    }
  }
}

const CELLS = {
  imports: 'import marimo as mo',
  slider: 'n = mo.ui.slider(1, 5)\nn',
  fails: '1 / 0',
};

/** Opens the page of a new notebook whose cells have run: a slider, and a cell that fails. Resolves with both, and with its cells. */
export async function openPressedPage(server: TestServer, browser: TestBrowser) {
  const notebook = await openNotebook(server, CELLS, { title: 'Pressed' });
  await notebook.run([]);
  const { url } = await server.client.notebookSessions.page(notebook.id);
  const { page } = await browser.openPath(server, url);
  await cellOf(page, 'fails').getByText('ZeroDivisionError').first().waitFor();
  return { notebook, page, codes: Object.values(CELLS) };
}
