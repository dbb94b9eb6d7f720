/**
 * Pictures of outputs that only scripts can draw, such as charts of altair, plotly and bokeh. marimo's front end draws them in a confined
 * browser. The browser has no network: it gets the files of the front end and the scripts of a request from this program, and nothing
 * else.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { anySignal } from '#src/base/async/any-signal.ts';
import type { StaticPicture } from '../show/static-page.ts';
import { BrowserPipe, PIPE_STDIO } from './browser-pipe.ts';
import { confine, confinementFault } from './confined-browser.ts';

/** The most cells of one report that are drawn. */
export const MAX_PICTURES = 100;
const DEFAULT_TIMEOUT_MS = 120_000;
const LOOK_MS = 250;
/**
 * After so many looks at an idle page without a newly drawn output, the remaining outputs are given up. Looks are counted, not
 * timed, because a busy machine draws slowly.
 */
const QUIET_LOOKS = 20;
const WIDTH = 960;
const HEIGHT = 1_200;
/** The most pixels of the page. Higher outputs are cut off. */
const MAX_HEIGHT = 6_000;
/** The pixels of a picture for each pixel of the page. A factor above one makes print sharp. */
const SCALE = 2;
const MAX_DESCRIPTION_CHARS = 500;
const FRONT_END_FILE = /^\/marimo\/[\w.-]+\/(?:[\w@-]+\/)?[\w@.~+-]+$/;

export interface PicturesRequest {
  /** The path of the browser. */
  readonly browser: string;
  /** The notebook as HTML that loads its front end from the server. */
  readonly html: string;
  /** The address of the server. */
  readonly baseUrl: string;
  readonly cellIds: readonly string[];
  /** Scripts that outputs load from elsewhere, by their addresses. */
  readonly scripts?: ReadonlyMap<string, string>;
  readonly signal: AbortSignal;
  /** The most time for all pictures together, in milliseconds; 120 seconds when absent. */
  readonly timeoutMs?: number;
  /**
   * How many looks at an idle page may find no new drawing before the rest is given up; 20 when absent. There is one look every
   * 250 ms.
   */
  readonly quietLooks?: number;
}

/** The pictures that were drawn, by the ids of their cells. If none could be drawn, the reason. */
export interface CellPictures {
  readonly pictures: ReadonlyMap<string, StaticPicture>;
  readonly fault?: string;
}

/** Resolves with pictures of the outputs that the front end draws. Rejects only when `signal` aborts. */
export async function drawCells(request: PicturesRequest): Promise<CellPictures> {
  const { browser, signal, timeoutMs = DEFAULT_TIMEOUT_MS, quietLooks = QUIET_LOOKS } = request;
  using confined = confine(browser);
  const child = spawn(
    confined.program,
    confined.arguments(['--remote-debugging-pipe', '--hide-scrollbars', 'about:blank']),
    { env: confined.env, stdio: [...PIPE_STDIO] },
  );
  const ended = once(child, 'close').catch(() => undefined);
  const pipe = new BrowserPipe(child);
  const limit = anySignal(signal, AbortSignal.timeout(timeoutMs));
  const stop = () => child.kill('SIGKILL');
  limit.addEventListener('abort', stop);
  const pictures = new Map<string, StaticPicture>();
  try {
    const page = await openPage(pipe, request);
    for (const cellId of await drawnCells(page, request.cellIds.slice(0, MAX_PICTURES), quietLooks)) {
      const picture = await page.picture(cellId);
      if (picture !== undefined) pictures.set(cellId, picture);
    }
    return { pictures };
  } catch (error) {
    signal.throwIfAborted();
    const reason = error instanceof Error ? error.message : String(error);
    const why = limit.aborted ? `drawing took longer than ${timeoutMs / 1000} seconds` : reason;
    return { pictures, fault: confinementFault(pipe.stderr) ?? why };
  } finally {
    limit.removeEventListener('abort', stop);
    stop();
    await ended;
  }
}

/** The place of an output in the view: left, top, width and height. */
type Box = readonly [number, number, number, number];

interface OpenPage {
  /** Whether the page waits for a file. */
  isLoading(): boolean;
  evaluate(expression: string): Promise<unknown>;
  /** Resolves with a picture of the output of a cell; undefined when the output is no longer in the page. */
  picture(cellId: string): Promise<StaticPicture | undefined>;
}

/** Opens the notebook in the browser. */
async function openPage(
  pipe: BrowserPipe,
  { html, baseUrl, scripts = new Map(), signal }: PicturesRequest,
): Promise<OpenPage> {
  const { targetId } = await pipe.send('Target.createTarget', { url: 'about:blank' });
  const { sessionId } = await pipe.send('Target.attachToTarget', { targetId, flatten: true });
  const send = (method: string, params?: Readonly<Record<string, unknown>>) =>
    pipe.send(method, params, String(sessionId));
  const address = new URL('/', baseUrl).href;
  let awaited = 0;
  pipe.on('Fetch.requestPaused', ({ requestId, request }) => {
    awaited++;
    const { url } = request as { readonly url: string };
    answerTo(url, { address, html, scripts, signal })
      .then(
        ({ type, bytes }) =>
          send('Fetch.fulfillRequest', {
            requestId,
            responseCode: 200,
            responseHeaders: [
              { name: 'content-type', value: type },
              { name: 'access-control-allow-origin', value: '*' },
            ],
            body: Buffer.from(bytes).toString('base64'),
          }),
        () => send('Fetch.failRequest', { requestId, errorReason: 'BlockedByClient' }),
      )
      .catch(() => {}) // the browser has ended
      .finally(() => {
        awaited--;
      });
  });
  const resize = (height: number) =>
    send('Emulation.setDeviceMetricsOverride', {
      width: WIDTH,
      height,
      deviceScaleFactor: SCALE,
      mobile: false,
    });
  const evaluate = async (expression: string): Promise<unknown> => {
    const { result } = await send('Runtime.evaluate', {
      expression,
      returnByValue: true,
      awaitPromise: true,
    });
    return Object(result).value as unknown;
  };
  await resize(HEIGHT);
  await send('Fetch.enable', { patterns: [{ urlPattern: '*' }] });
  await send('Page.enable');
  await send('Page.navigate', { url: address });
  return {
    isLoading: () => awaited > 0,
    evaluate,
    async picture(cellId) {
      // A browser draws only the part of a page that is in view.
      const place = `(${PLACE_IN_VIEW})(${JSON.stringify(cellId)})`;
      const first = (await evaluate(place)) as Box | null;
      if (first === null) return undefined;
      const height = Math.min(Math.max(HEIGHT, Math.ceil(first[3])), MAX_HEIGHT);
      if (height > HEIGHT) await resize(height);
      const [x, y, width, full] = ((await evaluate(place)) as Box | null) ?? first;
      const clip = { x, y, width, height: Math.min(full, height), scale: 1 };
      const { data } = await send('Page.captureScreenshot', { format: 'png', clip });
      if (height > HEIGHT) await resize(HEIGHT);
      const description = await evaluate(`(${DESCRIPTION})(${JSON.stringify(cellId)})`);
      const png = Buffer.from(String(data), 'base64');
      return typeof description === 'string' && description !== '' ? { png, description } : { png };
    },
  };
}

/** The possible answers to requests of a page. */
interface Answers {
  readonly address: string;
  readonly html: string;
  readonly scripts: ReadonlyMap<string, string>;
  readonly signal: AbortSignal;
}

/** Resolves with the page, a given script, or a file of the front end from the server. Rejects for everything else. */
async function answerTo(
  url: string,
  { address, html, scripts, signal }: Answers,
): Promise<{ readonly type: string; readonly bytes: Uint8Array }> {
  if (url === address) return { type: 'text/html; charset=utf-8', bytes: Buffer.from(html) };
  const script = scripts.get(url);
  if (script !== undefined) return { type: 'text/javascript; charset=utf-8', bytes: Buffer.from(script) };
  const { pathname } = new URL(url);
  if (!FRONT_END_FILE.test(pathname)) throw new Error(`${pathname} is no file of the front end`);
  const response = await fetch(new URL(pathname, address), { redirect: 'error', signal });
  if (!response.ok) throw new Error(`${pathname} cannot be read`);
  const type = response.headers.get('content-type') ?? 'application/octet-stream';
  return { type, bytes: new Uint8Array(await response.arrayBuffer()) };
}

/** Waits until the outputs of cells are drawn and keep their size. Resolves with the cells whose outputs are drawn. */
async function drawnCells(
  page: OpenPage,
  cellIds: readonly string[],
  quietLooks: number,
): Promise<readonly string[]> {
  const look = `(${SIZES_OF_DRAWN})(${JSON.stringify(cellIds)})`;
  let known = '';
  let quiet = 0;
  for (;;) {
    await delay(LOOK_MS);
    await page.evaluate(UNTIL_IDLE);
    const sizes = (await page.evaluate(look)) as readonly (string | null)[];
    const present = JSON.stringify(sizes);
    const isSame = present === known;
    known = present;
    quiet = isSame && !page.isLoading() ? quiet + 1 : 0;
    if (isSame && (!sizes.includes(null) || quiet >= quietLooks))
      return cellIds.filter((_, at) => sizes[at] !== null);
  }
}

/** Code for the page. It resolves when the page is idle, and after ten seconds in a page that is never idle. */
const UNTIL_IDLE =
  'new Promise((resolve) => requestIdleCallback(resolve, { timeout: 10_000 })).then(() => null)';

/** Code for the page. It returns the visible frames within an element that have plots of bokeh. */
const FRAMES_OF_BOKEH = `(element) => {
  const within = (root) =>
    [...root.querySelectorAll('*')].flatMap((one) => [
      ...(one.localName === 'iframe' && one.srcdoc.includes('//cdn.bokeh.org/') && one.clientWidth > 0 ? [one] : []),
      ...(one.shadowRoot === null ? [] : within(one.shadowRoot)),
    ]);
  return within(element);
}`;

/**
 * Code for the page. It returns the size of each cell's output; null for an output without a drawing larger than an icon, or with
 * an unfinished plot of bokeh. The output of a widget counts as a drawing, unless it is marimo's message that the widget's code
 * has failed.
 */
const SIZES_OF_DRAWN = `(ids) => {
  const framesOfBokeh = ${FRAMES_OF_BOKEH};
  const isFinished = ({ contentDocument, contentWindow }) => {
    const documents = contentDocument === null ? [] : (contentWindow.Bokeh?.documents ?? []);
    return documents.length > 0 && documents.every((one) => one.is_idle && one.roots().length > 0);
  };
  const isDrawing = (one) => {
    const { width, height } = one.getBoundingClientRect();
    return width * height > 2500 && (one.localName !== 'img' || one.complete);
  };
  const isShown = (one) => one.getBoundingClientRect().width * one.getBoundingClientRect().height > 0;
  const showsWidget = ({ shadowRoot }) =>
    [...(shadowRoot?.querySelectorAll('.contents > div:not(:has(> .line-clamp-4)) > *') ?? [])].some(isShown);
  const draws = (root) =>
    [...root.querySelectorAll('*')].some(
      (one) =>
        (one.localName === 'marimo-anywidget' && showsWidget(one)) ||
        (['canvas', 'svg', 'img'].includes(one.localName) && isDrawing(one)) ||
        (one.shadowRoot !== null && draws(one.shadowRoot)),
    );
  return ids.map((id) => {
    const output = document.getElementById('output-' + id);
    if (output === null) return null;
    const frames = framesOfBokeh(output);
    if (frames.length === 0 ? !draws(output) : !frames.every(isFinished)) return null;
    const { width, height } = output.getBoundingClientRect();
    return width + ' ' + height;
  });
}`;

/**
 * Code for the page. It returns the titles and axis labels of a cell's plots of bokeh, because the text of such an output is only
 * the name of a type. Other versions of bokeh may have other models.
 */
const DESCRIPTION = `(id) => {
  const framesOfBokeh = ${FRAMES_OF_BOKEH};
  const output = document.getElementById('output-' + id);
  const texts = (output === null ? [] : framesOfBokeh(output)).flatMap(({ contentWindow }) =>
    contentWindow.Bokeh.documents.flatMap(({ all_models }) =>
      [...(all_models ?? [])].map((one) => (one.type === 'Title' ? one.text : one.axis_label)),
    ),
  );
  const isText = (one) => typeof one === 'string' && one !== '';
  // This code runs in the browser. \`Array.from\` cuts no character in half.
  return Array.from(texts.filter(isText).join('; ')).slice(0, ${MAX_DESCRIPTION_CHARS}).join('');
}`;

/**
 * Code for the page. It brings the output of a cell into view, hides the parts that are for a mouse, and resolves with the place
 * of the drawn output; null when there is no such output. If a plot of bokeh is larger than its frame, the plot is made smaller
 * or the frame higher.
 */
const PLACE_IN_VIEW = `async (id) => {
  const framesOfBokeh = ${FRAMES_OF_BOKEH};
  const output = document.getElementById('output-' + id);
  if (output === null) return null;
  const hide = (root) => {
    for (const one of root.querySelectorAll('*')) {
      if (one.matches('.vega-embed > details, .modebar-container, [data-testid="watermark"]')) one.style.display = 'none';
      // The tools of bokeh are hidden but keep their place, because without it bokeh would draw the plot again.
      if (one.matches('.bk-Toolbar')) one.style.visibility = 'hidden';
      if (one.shadowRoot !== null) hide(one.shadowRoot);
    }
  };
  hide(document);
  for (const frame of framesOfBokeh(output)) {
    const root = frame.contentDocument.documentElement;
    hide(root);
    const { clientWidth, clientHeight } = frame;
    const width = root.scrollWidth;
    const height = root.scrollHeight;
    if (width <= clientWidth && height <= clientHeight) continue;
    const scale = clientWidth / width;
    // Negative margins reduce the frame to the size of the scaled plot.
    Object.assign(frame.style, {
      flex: 'none',
      width: width + 'px',
      maxWidth: 'none',
      height: height + 'px',
      transform: 'scale(' + scale + ')',
      transformOrigin: '0 0',
      marginRight: width * (scale - 1) + 'px',
      marginBottom: height * (scale - 1) + 'px',
    });
  }
  output.scrollIntoView({ block: 'start', behavior: 'instant' });
  await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
  const { x, y, width, height } = output.getBoundingClientRect();
  return [x + scrollX, y + scrollY, width, height];
}`;
