/**
 * Returns a script for the page that keeps it and the notebook equal when the server was away. marimo's page gives up sending after
 * one failure, gives up connecting after some, and shows the notebook of the server once it has connected, over text that was typed
 * meanwhile. So the script is between the page and the server:
 *
 * - A change of the page that the server does not answer is sent again until it does. The page sends later changes after it.
 * - The stream of messages never ends for the page: the script connects again.
 * - After that, the page gets only the differences between the notebook that it knew and the present one. A cell that somebody else
 *   has changed, and in which text was typed that is not sent yet, stays as it is: the text of the page comes last and wins. The
 *   other text is shown in a banner. If nothing comes of the keys that were pressed, the page gets the other text.
 * - The page around this one learns whether the server answers and whether there is unsaved text, and can ask for a new attempt.
 *
 * `settings` is JSON that is safe within a script element, with the `address` of the page.
 */
export function connectionScript(settings: string): string {
  return `(() => {
  const { address } = ${settings};
  const RETRY_MS = 1000, MAX_RETRY_MS = 10000, SILENT_MS = 35000, SETTLED_MS = 1500;
  const ask = window.fetch.bind(window);
  /** The notebook as the server has told it or confirmed it; codes by the ids of the cells, in their order. */
  let known = null;
  let settings = new Map();
  /** When a key was pressed in a cell whose text was not sent since. */
  const typed = new Map();
  /** How often each cell is among the changes that are being sent. */
  const sending = new Map();
  /** The texts of others, of cells in which this page has unsent text. */
  const contested = new Map();
  /** The cells whose changes the server has confirmed since the stream was asked for: the state that it sends first may lack them. */
  const confirmed = new Set();
  let isAway = false, isRestarting = false, held = 0, ordering = 0, told = '', wakers = [];
  let emit = () => {};

  const tell = () => {
    const state = { type: 'troupe-connection', isAway: isAway && !isRestarting, isUnsaved: held > 0 || (isAway && typed.size > 0) };
    const text = JSON.stringify(state);
    if (text === told || window.parent === window) return;
    told = text;
    window.parent.postMessage(state, new URL(address).origin);
  };
  const pause = (ms) => new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    wakers.push(() => { clearTimeout(timer); resolve(); });
  });
  const wake = () => { for (const go of wakers.splice(0)) go(); };
  const mayPass = (status) => status >= 500 || status === 429;

  window.addEventListener('message', (event) => {
    if (event.source !== window.parent || event.data?.type !== 'troupe-retry') return;
    told = '';
    tell();
    wake();
  });
  window.addEventListener('online', wake);
  window.addEventListener('troupe-restart', ({ detail }) => { isRestarting = detail; tell(); });
  // Other scripts of the page (page-installs.ts) give it messages in this way, as if the server had sent them.
  window.addEventListener('troupe-message', ({ detail }) => emit(detail.op, detail.data));
  for (const kind of ['keydown', 'input', 'paste', 'cut', 'drop'])
    document.addEventListener(kind, (event) => {
      const cell = event.target?.closest?.('[id^="cell-"]');
      if (cell) typed.set(cell.id.slice('cell-'.length), Date.now());
      if (isAway) tell();
    }, true);

  /** Applies changes that the server has confirmed, or has sent. */
  const note = (changes) => {
    if (known === null) return;
    for (const change of changes) {
      const { type, cellId } = change;
      if (type === 'delete-cell') known.delete(cellId);
      else if (type === 'set-code' && known.has(cellId)) known.set(cellId, change.code);
      else if (type === 'reorder-cells') {
        const rest = [...known.keys()].filter((id) => !change.cellIds.includes(id));
        const ids = [...change.cellIds.filter((id) => known.has(id)), ...rest];
        known = new Map(ids.map((id) => [id, known.get(id)]));
      } else if (type === 'create-cell' || type === 'move-cell') {
        const code = type === 'create-cell' ? change.code : known.get(cellId);
        if (code === undefined) continue;
        const cells = [...known].filter(([id]) => id !== cellId);
        const anchor = cells.findIndex(([id]) => id === (change.before ?? change.after));
        cells.splice(anchor === -1 ? cells.length : change.before ? anchor : anchor + 1, 0, [cellId, code]);
        known = new Map(cells);
      }
    }
  };

  const transact = async (request) => {
    const { changes } = JSON.parse(await request.clone().text());
    const cells = changes.flatMap(({ type, cellId }) => type === 'set-code' || type === 'create-cell' ? [cellId] : []);
    for (const id of cells) {
      typed.delete(id);
      sending.set(id, (sending.get(id) ?? 0) + 1);
    }
    const isOrdering = changes.some(({ type }) => type !== 'set-code' && type !== 'set-config' && type !== 'set-name');
    if (isOrdering) ordering++;
    let response, delay = RETRY_MS, isHeld = false;
    for (;;) {
      // The page has to learn first what has changed, or it could not tell its own change from an older state of the notebook.
      if (!isAway) response = await ask(request.clone()).catch(() => undefined);
      if (response !== undefined && !mayPass(response.status)) break;
      if (!isHeld) held++;
      isHeld = true;
      tell();
      await pause(delay);
      if (!isAway) delay = Math.min(delay * 1.5, MAX_RETRY_MS);
    }
    if (isHeld) held--;
    if (isOrdering) ordering--;
    for (const id of cells) {
      if (sending.get(id) === 1) sending.delete(id);
      else sending.set(id, sending.get(id) - 1);
    }
    if (response.ok) {
      note(changes);
      for (const { cellId } of changes) if (cellId !== undefined) confirmed.add(cellId);
      for (const { type, cellId, code } of changes) {
        const other = type === 'set-code' ? contested.get(cellId) : undefined;
        if (other === undefined) continue;
        contested.delete(cellId);
        if (other !== code) offer(other);
      }
    }
    tell();
    return response;
  };

  const escaped = (text) => text.replace(/[&<>"']/g, (char) => '&#' + char.charCodeAt(0) + ';');
  /** Shows the text of somebody else that this page has replaced. */
  const offer = (text) => emit('banner', {
    title: 'Somebody else has changed a cell that you have changed, too',
    description: 'Your text was saved. The other text was:<pre>' + escaped(text) + '</pre>',
    variant: null,
    action: null,
  });

  /** Sends the page the differences between the notebook that it knew and the present one. */
  const reconcile = (ready) => {
    const present = new Map(ready.cell_ids.map((id, at) => [id, ready.codes[at]]));
    const changes = [];
    for (const id of confirmed) {
      if (known.has(id)) present.set(id, known.get(id));
      else present.delete(id);
    }
    for (const id of known.keys()) if (!present.has(id)) changes.push({ type: 'delete-cell', cellId: id });
    ready.cell_ids.forEach((cellId, at) => {
      if (confirmed.has(cellId)) return;
      const code = present.get(cellId), name = ready.names[at], config = ready.configs[at];
      const setting = JSON.stringify([name, config]);
      if (!known.has(cellId))
        changes.push({ type: 'create-cell', cellId, code, name, config, before: null, after: ready.cell_ids[at - 1] ?? null });
      else {
        if (known.get(cellId) !== code) {
          if (typed.has(cellId) || sending.has(cellId)) contested.set(cellId, code);
          else changes.push({ type: 'set-code', cellId, code });
        }
        if (settings.get(cellId) !== setting) {
          const { column, disabled, hide_code: hideCode, expand_output: expandOutput } = config;
          changes.push({ type: 'set-name', cellId, name });
          changes.push({ type: 'set-config', cellId, column, disabled, hideCode, expandOutput });
        }
      }
    });
    const before = [...known.keys()].filter((id) => present.has(id));
    const after = ready.cell_ids.filter((id) => known.has(id));
    if (ordering === 0 && (before.join() !== after.join() || changes.some(({ type }) => type === 'create-cell')))
      changes.push({ type: 'reorder-cells', cellIds: ready.cell_ids });
    learn(ready, present);
    emit('reconnected', {});
    if (changes.length > 0) emitChanges(changes);
    if (contested.size > 0) setTimeout(settle, SETTLED_MS);
  };
  const emitChanges = (changes) =>
    emit('notebook-document-transaction', { transaction: { changes, source: 'kernel', version: null } });
  const learn = (ready, present) => {
    known = present;
    settings = new Map(ready.cell_ids.map((id, at) => [id, JSON.stringify([ready.names[at], ready.configs[at]])]));
  };
  /** Gives the page the texts of others where keys were pressed and no text has come of them. */
  const settle = () => {
    const changes = [];
    for (const [cellId, code] of contested) {
      const isQuiet = Date.now() - (typed.get(cellId) ?? 0) > SETTLED_MS;
      if (isAway || held > 0 || sending.has(cellId) || !isQuiet) continue;
      contested.delete(cellId);
      if (known.has(cellId)) changes.push({ type: 'set-code', cellId, code });
    }
    if (changes.length > 0) emitChanges(changes);
    if (contested.size > 0) setTimeout(settle, SETTLED_MS);
  };

  const follow = async (url, init = {}) => {
    const first = await ask(url, init);
    if (!first.ok || first.body === null) return first;
    let isOver = false, attempt = new AbortController();
    const end = () => { isOver = true; attempt.abort(); wake(); };
    init.signal?.addEventListener('abort', end);
    const body = new ReadableStream({
      start(controller) {
        const encoder = new TextEncoder();
        const send = (frame) => { if (!isOver) controller.enqueue(encoder.encode(frame + '\\n\\n')); };
        emit = (op, data) => send('data: ' + JSON.stringify({ op, data: { op, ...data } }));
        const take = (frame) => {
          const line = frame.split('\\n').find((one) => one.startsWith('data: ')) ?? '';
          const op = /^data: \\{"op":"(kernel-ready|notebook-document-transaction)"/.exec(line)?.[1];
          if (frame.startsWith('event: close')) { send(frame); end(); return; }
          if (op === undefined) { send(frame); return; }
          const { data } = JSON.parse(line.slice('data: '.length));
          if (op === 'notebook-document-transaction') note(data.transaction.changes);
          else {
            isAway = false;
            wake();
            tell();
            if (known !== null) { reconcile(data); return; }
            learn(data, new Map(data.cell_ids.map((id, at) => [id, data.codes[at]])));
          }
          send(frame);
        };
        const read = async (response) => {
          const reader = response.body.getReader(), decoder = new TextDecoder();
          let text = '';
          for (;;) {
            const silence = setTimeout(() => attempt.abort(), SILENT_MS); // the server sends something every ten seconds
            const { done, value } = await reader.read().finally(() => clearTimeout(silence));
            if (done || isOver) return;
            text += decoder.decode(value, { stream: true });
            const frames = text.split('\\n\\n');
            text = frames.pop();
            frames.forEach(take);
          }
        };
        const run = async () => {
          let response = first;
          for (;;) {
            await read(response).catch(() => {});
            let delay = RETRY_MS;
            for (;;) {
              if (isOver) break;
              isAway = true;
              tell();
              await pause(delay);
              delay = Math.min(delay * 1.3, MAX_RETRY_MS);
              if (isOver) break;
              attempt = new AbortController();
              confirmed.clear();
              const slow = setTimeout(() => attempt.abort(), MAX_RETRY_MS);
              response = await ask(url, { ...init, signal: attempt.signal }).catch(() => undefined);
              clearTimeout(slow);
              if (response === undefined || mayPass(response.status)) continue;
              if (response.ok && response.body !== null) break;
              isOver = true; // refused: marimo's page asks once more, and says so
              isAway = false;
              wake();
              break;
            }
            if (isOver) break;
          }
          try { controller.close(); } catch { /* the page has cancelled the stream */ }
        };
        void run();
      },
      cancel: end,
    });
    return new Response(body, { status: 200, headers: { 'content-type': 'text/event-stream' } });
  };

  window.fetch = (input, init) => {
    const url = input instanceof Request ? input.url : String(input);
    const path = url.startsWith(address) ? url.slice(address.length).split('?')[0] : '';
    if (path === 'sse') return follow(url, init);
    if (path === 'api/document/transaction') return transact(new Request(input, init));
    if (path === '') return ask(input, init);
    return ask(input, init).catch((error) => {
      if (error.name === 'AbortError') throw error;
      // The page asks for completions at each key, and would say at each that it got none.
      if (path === 'api/kernel/code_autocomplete') return Response.json({ success: true });
      throw new TypeError('The server does not answer.'); // the page shows this sentence in place of "Failed to fetch"
    });
  };
})();`;
}
