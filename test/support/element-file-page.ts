/** A page with `mo.ui.file` in Chromium, and the output of its notebook for the chosen files. */
import { createHash } from 'node:crypto';
import type { Locator, Page } from 'playwright-core';
import { cellOf, openBrowser, outputOf } from './browser.ts';
import { elementFilesIn } from './element-files.ts';
import { type OpenNotebook, openNotebook } from './notebook-fixture.ts';
import type { Owner, TestServer } from './server-fixture.ts';

const ELEMENT = 'mo.ui.file(kind="area", multiple=True)';
const SHOWN = `
import hashlib
print("has", [(one.name, len(one.contents), hashlib.sha256(one.contents).hexdigest()) for one in file.value or ()])`;

const digest = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

/** Returns the text that the notebook prints about files. */
export const shownOf = (...files: readonly (readonly [name: string, bytes: Uint8Array])[]) =>
  `has [${files.map(([name, bytes]) => `('${name}', ${bytes.length}, '${digest(bytes)}')`).join(', ')}]`;

/** Returns a file for a browser. */
export const asFile = (name: string, buffer: Buffer) => ({
  name,
  mimeType: 'application/octet-stream',
  buffer,
});

export class ElementFilePage {
  readonly page: Page;
  readonly notebook: OpenNotebook;
  readonly #server: TestServer;

  private constructor(server: TestServer, page: Page, notebook: OpenNotebook) {
    this.#server = server;
    this.page = page;
    this.notebook = notebook;
  }

  /** Opens a notebook in a browser and runs it. The variable `file` is the element, which Python code makes with `mo` as marimo. */
  static async open(owner: Owner, server: TestServer, element = ELEMENT): Promise<ElementFilePage> {
    const browser = await openBrowser(owner);
    const notebook = await openNotebook(server, {
      element: `import marimo as mo\nfile = ${element}\nfile`,
      shown: SHOWN,
    });
    const { url } = await server.client.notebookSessions.page(notebook.id);
    const { page } = await browser.openPath(server, url);
    const opened = new ElementFilePage(server, page, notebook);
    await cellOf(page, 'shown').getByTestId('run-button').first().click();
    await opened.see(shownOf());
    return opened;
  }

  get element(): Locator {
    return outputOf(this.page, 'element');
  }

  get input(): Locator {
    return this.element.locator('input[type=file]');
  }

  /** Resolves once the notebook shows a text. */
  async see(text: string): Promise<void> {
    await cellOf(this.page, 'shown').getByText(text, { exact: true }).first().waitFor();
  }

  /** Returns the names below the hidden folder of the notebook, those of files that are still arriving included. */
  left(): readonly string[] {
    return elementFilesIn(this.#server, this.notebook.id);
  }

  /** Returns the ids of the files that have arrived whole. */
  arrived(): readonly string[] {
    return this.left().filter((name) => /^[0-9a-f]{32}$/.test(name));
  }
}
