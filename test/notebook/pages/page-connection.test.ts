/** The script between marimo's page and the server, with a window and a server of the test's own. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { connectionScript } from '#src/notebook/pages/page-connection.ts';
import { eventually } from '#test/support/processes.ts';

const ADDRESS = 'http://troupe.test/n/nb_1/';
const FASTER = 100;

type Members = Readonly<Record<string, unknown>>;
type Codes = Readonly<Record<string, string>>;

/** A page whose server can be away. */
class Stage {
  /** The messages that the page has got. */
  readonly got: Members[] = [];
  /** The changes that the server has got. */
  readonly changed: Members[] = [];
  isAway = false;
  codes: Codes;
  #stream: ReadableStreamDefaultController<Uint8Array> | undefined;
  #listeners: ((event: unknown) => void)[] = [];
  readonly #window = {
    fetch: (input: Request | string) => this.#answer(input),
    addEventListener: () => {},
    parent: undefined as unknown,
  };

  constructor(codes: Codes) {
    this.codes = codes;
    this.#window.parent = this.#window;
    const document = {
      addEventListener: (_: string, listener: (event: unknown) => void) => this.#listeners.push(listener),
    };
    const faster = (act: () => void, ms: number) => setTimeout(act, ms / FASTER);
    const script = connectionScript(JSON.stringify({ address: ADDRESS }));
    new Function('window', 'document', 'setTimeout', script)(this.#window, document, faster);
  }

  async open(): Promise<void> {
    const response = await this.#window.fetch(`${ADDRESS}sse?session_id=s_1`);
    void this.#read(response);
    await this.until('kernel-ready', 1);
  }

  close(): void {
    this.isAway = false;
    this.#stream?.enqueue(
      new TextEncoder().encode('event: close\ndata: {"code":1000,"reason":"MARIMO_SHUTDOWN"}\n\n'),
    );
  }

  leave(): void {
    this.isAway = true;
    this.#stream?.error(new Error('the connection was cut'));
  }

  comeBack(codes: Codes): void {
    this.codes = codes;
    this.isAway = false;
  }

  press(cellId: string): void {
    const target = { closest: () => ({ id: `cell-${cellId}` }) };
    for (const listener of this.#listeners) listener({ target });
  }

  async send(...changes: readonly Members[]): Promise<number> {
    const body = JSON.stringify({ changes });
    const request = new Request(`${ADDRESS}api/document/transaction`, { method: 'POST', body });
    return (await this.#window.fetch(request)).status;
  }

  until(op: string, count: number): Promise<unknown> {
    return eventually(`the page has got ${op}`, () => this.of(op).length === count);
  }

  of(op: string): Members[] {
    return this.got.filter((message) => message.op === op);
  }

  get changes(): unknown[] {
    return this.of('notebook-document-transaction').flatMap(({ transaction }) => Object(transaction).changes);
  }

  async #answer(input: Request | string): Promise<Response> {
    if (this.isAway) throw new TypeError('Failed to fetch');
    if (typeof input !== 'string') {
      this.changed.push(...JSON.parse(await input.text()).changes);
      return new Response('{}');
    }
    const ids = Object.keys(this.codes);
    const data = {
      op: 'kernel-ready',
      cell_ids: ids,
      codes: Object.values(this.codes),
      names: ids.map(() => '_'),
      configs: ids.map(() => ({ disabled: false, hide_code: false, expand_output: false, column: null })),
    };
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#stream = controller;
        controller.enqueue(new TextEncoder().encode(`data: ${JSON.stringify({ op: data.op, data })}\n\n`));
      },
    });
    return new Response(body);
  }

  async #read(response: Response): Promise<void> {
    let text = '';
    for await (const chunk of response.body ?? []) {
      text += new TextDecoder().decode(chunk);
      const frames = text.split('\n\n');
      text = frames.pop() ?? '';
      for (const frame of frames)
        if (frame.startsWith('data: ')) this.got.push(JSON.parse(frame.slice('data: '.length)).data);
    }
  }
}

test('text that is typed while the server is away is kept and sent later, and the page gets only the changes of other people', async () => {
  const stage = new Stage({ a: 'a = 1', b: 'b = 1', gone: '' });
  await stage.open();
  stage.leave();
  stage.press('a');
  const sent = stage.send({ type: 'set-code', cellId: 'a', code: 'a = 2' });
  stage.comeBack({ a: 'a = 1', b: 'b = 2', new: 'n = 1' });
  assert.equal(await sent, 200);
  await stage.until('reconnected', 1);
  await eventually('the page has the changes', () => stage.changes.length > 0);
  const of = (type: string) => stage.changes.filter((change) => Object(change).type === type);
  assert.deepEqual(of('set-code'), [{ type: 'set-code', cellId: 'b', code: 'b = 2' }]);
  assert.deepEqual(of('delete-cell'), [{ type: 'delete-cell', cellId: 'gone' }]);
  assert.deepEqual(
    of('create-cell').map((change) => [Object(change).cellId, Object(change).code, Object(change).after]),
    [['new', 'n = 1', 'b']],
  );
  assert.deepEqual(stage.changed, [{ type: 'set-code', cellId: 'a', code: 'a = 2' }]);
  assert.equal(stage.of('kernel-ready').length, 1, 'nothing replaces the text of the page');
  assert.deepEqual(stage.of('banner'), []);
  stage.close();
});

test('if page and server have both changed a cell, the text of the page is kept, and the page offers the other text', async () => {
  const stage = new Stage({ a: 'a = 1' });
  await stage.open();
  stage.leave();
  stage.press('a');
  stage.comeBack({ a: 'theirs < 1' });
  await stage.until('reconnected', 1);
  assert.equal(await stage.send({ type: 'set-code', cellId: 'a', code: 'mine' }), 200);
  await stage.until('banner', 1);
  assert.match(String(stage.of('banner')[0]?.description), /theirs &#60; 1/);
  assert.deepEqual(stage.changes, []);
  stage.close();
});

test('a page whose pressed keys produced no text gets the text of the server', async () => {
  const stage = new Stage({ a: 'a = 1' });
  await stage.open();
  stage.leave();
  stage.press('a');
  stage.comeBack({ a: 'a = 2' });
  await eventually('the page has the text', () => stage.changes.length === 1);
  assert.deepEqual(stage.changes, [{ type: 'set-code', cellId: 'a', code: 'a = 2' }]);
  stage.close();
});
