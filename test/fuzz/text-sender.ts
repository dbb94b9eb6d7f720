/** The thread that writes the requests of the fuzz of texts and reads their answers, so that the event loop of the server does nothing else. */
import { writeSync } from 'node:fs';
import { Agent, type IncomingMessage, request } from 'node:http';
import { parentPort, workerData } from 'node:worker_threads';
import { badText } from './bad-texts.ts';
import { type TextPlace, type TextRequest, textPlaces, type World } from './text-places.ts';

/** One request: the number of its place, the kind of text, and how long the text is. */
export interface TextJob {
  readonly place: number;
  readonly kind: string;
  /** The characters of the text. `whole`: as many as the request may have, `beyond`: more than that. */
  readonly size: number | 'whole' | 'beyond';
}

export interface SentText {
  /** The number of the message. */
  readonly id: number;
  /** The status; 0 when the connection was closed without one, and -1 when nothing came. */
  readonly status: number;
  readonly chars: number;
  readonly error: string;
  /** The beginning of the answer. */
  readonly text: string;
}

/** A numbered message to the thread: a job, or the new world after something was replaced. */
export type SenderMessage = { readonly id: number } & ({ readonly job: TextJob } | { readonly world: World });

const PATIENCE_MS = 60_000;
/** A stream is left after this time, because it has no end. */
const STREAM_MS = 150;
const SAMPLE_CHARS = 600;
const MAX_SHOWN = 300;

if (parentPort !== null) serve(workerData as { readonly baseUrl: string; readonly world: World });

function serve({ baseUrl, world }: { readonly baseUrl: string; readonly world: World }): void {
  let places = textPlaces(world);
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });
  parentPort!.on('message', async (message: SenderMessage) => {
    if ('world' in message) {
      places = textPlaces(message.world);
      await followPage(baseUrl, message.world);
      parentPort!.postMessage({
        id: message.id,
        status: 0,
        chars: 0,
        error: '',
        text: '',
      } satisfies SentText);
      return;
    }
    const { id, job } = message;
    const place = places[job.place]!;
    try {
      const text = textFor(place, job);
      const made = place.request(text);
      const whole =
        place.operation === 'completeProviderSignIn' ? await begun(baseUrl, made, place.member) : made;
      const late = setTimeout(
        () =>
          writeSync(
            2,
            `No answer for a minute: ${place.operation} ${place.member}, ${job.kind}, ${text.length} characters\n`,
          ),
        PATIENCE_MS - 1_000,
      );
      const answer = await send(baseUrl, whole, agent).finally(() => clearTimeout(late));
      parentPort!.postMessage({ ...answer, id, chars: text.length } satisfies SentText);
    } catch (error) {
      parentPort!.postMessage({ id, status: 0, chars: 0, error: String(error), text: '' } satisfies SentText);
    }
  });
}

/** Begins the stream of the page, without which the page's requests are refused. */
function followPage(baseUrl: string, { page, known }: World): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${page.token}` };
    const stream = request(
      `${baseUrl}/n/${known.notebookId}/sse?session_id=${page.id}`,
      { headers },
      (incoming) => {
        incoming.once('data', () => resolve());
        incoming.resume();
        incoming.on('error', () => {}); // the notebook was replaced
      },
    );
    stream.on('error', reject);
    stream.end();
  });
}

/** The bytes of a request for one character of a text, and those without the text, by place and kind. */
const costs = new Map<string, { readonly fixed: number; readonly perChar: number }>();

/** Returns the text of a job. The bytes of a request for each character depend on the kind. */
function textFor(place: TextPlace, { kind, size, place: at }: TextJob): string {
  const key = `${at} ${kind}`;
  const cost = costs.get(key) ?? costOf(place, kind);
  costs.set(key, cost);
  const fitting = Math.max(1, Math.floor((place.maxBytes - cost.fixed) / cost.perChar));
  if (size === 'beyond') return badText(kind, fitting + Math.ceil(2_000 / cost.perChar));
  return badText(kind, size === 'whole' ? fitting : Math.min(size, fitting));
}

function costOf({ request }: TextPlace, kind: string) {
  const bytesOf = (text: string) => {
    const { body = '', path, headers } = request(text);
    return Math.max(
      Buffer.byteLength(body),
      path.length,
      ...Object.values(headers).map(({ length }) => length),
    );
  };
  const [some, more] = [bytesOf(badText(kind, SAMPLE_CHARS)), bytesOf(badText(kind, 3 * SAMPLE_CHARS))];
  const perChar = Math.max(0.05, (more - some) / (2 * SAMPLE_CHARS));
  return { perChar, fixed: Math.max(0, some - SAMPLE_CHARS * perChar) };
}

/** Returns the request with the cookie and the state of an attempt to sign in that has just begun. */
async function begun(baseUrl: string, request: TextRequest, member: string): Promise<TextRequest> {
  const attempt = await fetch(`${baseUrl}/sign-in/provider?to=%2F`, { redirect: 'manual' });
  const cookie = attempt.headers
    .getSetCookie()
    .map((line) => line.split(';')[0])
    .join('; ');
  const state = new URL(attempt.headers.get('location') ?? 'http://none').searchParams.get('state') ?? '';
  if (!member.startsWith('query.') || member === 'query.state') return request;
  const code = member === 'query.code' ? '' : '&code=c';
  const headers = { ...request.headers, cookie };
  return { ...request, headers, path: `${request.path}&state=${state}${code}` };
}

function send(
  baseUrl: string,
  { method, path, headers, body }: TextRequest,
  agent: Agent,
): Promise<Omit<SentText, 'id' | 'chars'>> {
  const { hostname, port } = new URL(baseUrl);
  return new Promise((resolve) => {
    const end = (status: number, error = '', text = '') => {
      clearTimeout(timer);
      resolve({ status, error, text });
    };
    const timer = setTimeout(() => {
      outgoing.destroy();
      end(-1);
    }, PATIENCE_MS);
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
    const outgoing = request(
      { hostname, port, method, path, agent, headers: { ...length, ...headers } },
      (incoming) => {
        const status = incoming.statusCode ?? 0;
        if (String(incoming.headers['content-type']).startsWith('text/event-stream'))
          setTimeout(() => {
            outgoing.destroy();
            end(status);
          }, STREAM_MS);
        read(incoming, (text) => end(status, '', text));
      },
    );
    outgoing.on('error', (error) => end(0, error.message));
    outgoing.end(body);
  });
}

function read(incoming: IncomingMessage, done: (text: string) => void): void {
  let text = '';
  incoming.on('data', (piece: Buffer) => {
    if (text.length < MAX_SHOWN) text += piece.toString('utf8', 0, MAX_SHOWN);
  });
  incoming.on('error', () => done(text));
  incoming.on('end', () => done(text));
}
