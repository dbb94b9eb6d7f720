/** A page of a notebook as a browser has it, without the browser: its cookie, its token and its stream. */
import assert from 'node:assert/strict';
import type { Client } from '#src/contract/client/client.ts';
import type { OpenBrowserPage } from '#src/contract/wire/session.ts';

type Message = Readonly<Record<string, unknown>>;

const PATIENCE_MS = 60_000;
let pages = 0;

export class NotebookPageClient implements AsyncDisposable {
  address: string;
  readonly token: string;
  readonly cookie: string;
  readonly html: string;
  readonly headers: Headers;
  readonly pageId = `s_${++pages}`;
  /** All messages so far. */
  readonly messages: Message[] = [];
  /** Whether the stream was ended for good. */
  isClosed = false;
  readonly #abort = new AbortController();
  #wake = () => {};

  private constructor(address: string, cookie: string, html: string, headers: Headers) {
    this.address = address;
    this.cookie = cookie;
    this.html = html;
    this.headers = headers;
    this.token = /"authToken":"([^"]+)"/.exec(html)?.[1] ?? '';
  }

  /** Opens a page by its one-time address, as a browser does. */
  static async open(
    client: Client,
    baseUrl: string,
    notebookId: string,
    request: OpenBrowserPage = {},
  ): Promise<NotebookPageClient> {
    const { url } = await client.notebookSessions.page(notebookId, request);
    const opened = await fetch(baseUrl + url, { redirect: 'manual' });
    assert.equal(opened.status, 303, await opened.text());
    const cookie = (opened.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
    const address = new URL(opened.headers.get('location') ?? '', baseUrl + url).href;
    const page = await fetch(`${address}page/`, { headers: { cookie } });
    const html = await page.text();
    assert.equal(page.status, 200, html);
    return new NotebookPageClient(address, cookie, html, page.headers);
  }

  /** The server has another address now. */
  moveTo(baseUrl: string): void {
    this.address = baseUrl + new URL(this.address).pathname;
  }

  /** Begins the stream and resolves with the first state. */
  async follow(): Promise<Message> {
    const response = await fetch(`${this.address}sse?session_id=${this.pageId}`, {
      headers: { authorization: `Bearer ${this.token}` },
      signal: this.#abort.signal,
    });
    assert.equal(response.status, 200, response.status === 200 ? '' : await response.text());
    void this.#read(response).catch(() => undefined);
    return this.next(({ op }) => op === 'kernel-ready');
  }

  /** Sends a request of the page. */
  send(path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
    return fetch(`${this.address}api/${path}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${this.token}`,
        'content-type': 'application/json',
        'marimo-session-id': this.pageId,
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }

  /** Sends a request that must be carried out. */
  async do(path: string, body: unknown = {}): Promise<void> {
    const response = await this.send(path, body);
    assert.equal(response.status, 200, await response.text());
  }

  /** Resolves with the first message, past or future, that the test accepts. */
  async next(accepts: (message: Message) => boolean): Promise<Message> {
    const endMs = performance.now() + PATIENCE_MS;
    for (;;) {
      const found = this.messages.find(accepts);
      if (found !== undefined) return found;
      const leftMs = endMs - performance.now();
      assert.ok(leftMs > 0, `no such message among ${JSON.stringify(this.messages).slice(-2000)}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, leftMs);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  async #read(response: Response): Promise<void> {
    let text = '';
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk, { stream: true });
      for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n')) {
        const frame = text.slice(0, end);
        text = text.slice(end + 2);
        if (frame.includes('event: close')) this.isClosed = true;
        const data = /^data: (.*)$/m.exec(frame)?.[1];
        const { data: message } = Object(JSON.parse(data ?? '{}')) as { readonly data?: Message };
        if (message !== undefined) this.messages.push(message);
        this.#wake();
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#abort.abort();
  }
}
