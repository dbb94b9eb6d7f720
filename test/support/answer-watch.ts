/** A `fetch` that checks every response against the OpenAPI document of the server. */
import { get, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { EventParser } from '#src/contract/client/event-parser.ts';
import { type Answer, type AnswerCheck, createAnswerCheck } from './openapi-check.ts';

/** A `fetch` that checks every answer, and the faults that it found. */
export interface AnswerWatch {
  readonly fetch: typeof fetch;
  /** Throws when the document does not allow the response. */
  check(answer: Answer): void;
  /** Faults of events; no caller waits for these, so they cannot be thrown. */
  readonly complaints: readonly string[];
  /** Makes all further requests fail, because the server will not start again. */
  end(): void;
}

/** Returns a watch for the server. */
export async function watchAnswers(baseUrl: string): Promise<AnswerWatch> {
  const check = checkOf(await documentOf(baseUrl));
  const complaints: string[] = [];
  let isOver = false;

  const watched: typeof fetch = async (input, init) => {
    if (isOver) return new Response('', { status: 410 });
    const response = await fetch(input, init);
    const { status, headers } = response;
    const answer = {
      method: init?.method ?? 'GET',
      path: new URL(String(input)).pathname,
      status,
      contentType: headers.get('content-type') ?? '',
    };
    if (answer.contentType.startsWith('text/event-stream')) {
      return new Response(
        response.body?.pipeThrough(
          eventCheck((body) => {
            try {
              check({ ...answer, body });
            } catch (error) {
              complaints.push(String(error));
            }
          }),
        ),
        { status, headers },
      );
    }
    check({ ...answer, body: parsed(await response.clone().text()) });
    return response;
  };
  const end = () => {
    isOver = true;
  };
  return { fetch: watched, check, complaints, end };
}

/** The checks by document: servers with the same settings have the same document, and parsing it takes long. */
const checks = new Map<string, AnswerCheck>();

function checkOf(document: string): AnswerCheck {
  const check = checks.get(document) ?? createAnswerCheck(JSON.parse(document));
  checks.set(document, check);
  return check;
}

/**
 * Resolves with the OpenAPI document, which is read on a connection of its own. Making the check from it takes so long on a busy
 * machine that the server would close a kept connection meanwhile, and the next request would be sent on it.
 */
async function documentOf(baseUrl: string): Promise<string> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(`${baseUrl}/api/v3/openapi.json`, { agent: false }, resolve).once('error', reject);
  });
  return text(response);
}

/** Passes bytes on, and calls `check` with each complete event as a stream of its own. */
function eventCheck(check: (body: string) => void): TransformStream<Uint8Array, Uint8Array> {
  const parser = new EventParser();
  return new TransformStream({
    transform(bytes, controller) {
      for (const { data } of parser.push(bytes)) check(`data: ${data}\n\n`);
      controller.enqueue(bytes);
    },
  });
}

/** Returns parsed JSON, or the text itself. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text; // a response that is not JSON is checked as text
  }
}
