/**
 * One request to the receiver of a hook: through the gateway for outgoing connections, without redirects, within a time and with a
 * bounded answer. The result says in words why a request has failed. It holds no part of an error of a socket.
 */

import type { IncomingMessage } from 'node:http';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Duplex } from 'node:stream';
import { VERSION } from '#src/base/install/version.ts';
import { MAX_RESPONSE_BYTES } from '#src/contract/wire/hook.ts';
import { originOf, targetOf, tlsOf } from '#src/datasource/connectors/http/address.ts';
import { agentFor } from '#src/datasource/connectors/http/client.ts';
import type { Egress } from '#src/datasource/egress/egress.ts';
import type { EgressRoute } from '#src/datasource/egress/egress-route.ts';
import { categoryOfSocketError, DatasourceFailure, type FailureCategory } from '#src/datasource/failure.ts';

/** One message to a receiver. */
export interface Message {
  readonly workspaceId: string;
  readonly url: string;
  readonly id: string;
  readonly timestampS: string;
  /** The signatures, separated by spaces. */
  readonly signature: string;
  readonly body: string;
}

/** What has become of a request. */
export interface Sent {
  /** Null when there was no answer. */
  readonly status: number | null;
  /** The beginning of the answer; null when there was none. */
  readonly response: string | null;
  /** Null when the receiver has taken the message. */
  readonly failure: { readonly code: FailureCode; readonly message: string } | null;
}

/**
 * How long the host name may be looked up, in milliseconds. This includes the time in which names of other workspaces are looked up, so
 * it does not count as time of the receiver.
 */
const MAX_LOOKUP_MS = 60_000;
/** How long one request may take from then on, in milliseconds. */
const MAX_REQUEST_MS = 15_000;
/** How long the beginning of an answer may take after its status has arrived, in milliseconds. */
const MAX_ANSWER_MS = 2000;
/** How many interim answers, such as `100 Continue`, may come before the answer. */
const MAX_INTERIM = 20;

/** The status with which a receiver wants to speak another protocol. Such an answer has no body. */
const SWITCHING = 101;

const FAILURES = {
  name_not_found: 'The host name of the URL was not found.',
  refused: 'The receiver refused the connection.',
  unreachable: 'The receiver could not be reached, or ended the connection without an answer.',
  not_allowed:
    'This server is not allowed to connect to the address of the URL. An operator can allow it with TROUPE_EGRESS_ALLOW.',
  tls: 'A secure connection could not be made: the receiver has no TLS, or a certificate that cannot be trusted.',
  timeout: `The receiver did not answer within ${MAX_REQUEST_MS / 1000} seconds.`,
} as const satisfies Partial<Readonly<Record<FailureCategory, string>>>;
/** Why an attempt has failed: all values of a label of the metrics. */
export const FAILURE_CODES = [
  ...(Object.keys(FAILURES) as (keyof typeof FAILURES)[]),
  ...(['unreadable', 'redirect', 'gone', 'http_status', 'internal'] as const),
];
export type FailureCode = (typeof FAILURE_CODES)[number];
const UNREADABLE = 'The answer of the receiver could not be read as HTTP.';

/** Sends a message. Resolves with what has become of it; rejects only when `signal` aborts. */
export async function send(egress: Egress, message: Message, signal: AbortSignal): Promise<Sent> {
  const lookup = AbortSignal.timeout(MAX_LOOKUP_MS);
  let deadline: AbortSignal | undefined;
  try {
    const { host, port } = targetOf(message.url);
    using route = await egress.admit(host, port, AbortSignal.any([signal, lookup]), message.workspaceId);
    deadline = AbortSignal.timeout(MAX_REQUEST_MS);
    return await post(route, message, AbortSignal.any([signal, deadline]));
  } catch (error) {
    signal.throwIfAborted();
    const isUnfound = deadline === undefined && lookup.aborted;
    const category = isUnfound ? 'name_not_found' : deadline?.aborted ? 'timeout' : categoryOf(error);
    const failure =
      category !== undefined && category in FAILURES
        ? { code: category as keyof typeof FAILURES, message: FAILURES[category as keyof typeof FAILURES] }
        : ({ code: 'unreadable', message: UNREADABLE } as const);
    return { status: null, response: null, failure };
  }
}

async function post(route: EgressRoute, message: Message, signal: AbortSignal): Promise<Sent> {
  const { url, id, timestampS, signature, body } = message;
  const tls = tlsOf(url);
  const agent = agentFor(route, tls);
  const { pathname, search } = new URL(url);
  const to = new URL(originOf(route, tls));
  // Not resolved against the origin: a path that begins with two slashes would name a host.
  to.pathname = pathname;
  to.search = search;
  const headers = {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    'user-agent': `Troupe/${VERSION}`,
    'webhook-id': id,
    'webhook-timestamp': timestampS,
    'webhook-signature': signature,
  };
  const open = tls === false ? httpRequest : httpsRequest;
  try {
    const answer = await new Promise<IncomingMessage>((done, fail) => {
      const request = open(to, { method: 'POST', agent, signal, headers });
      let interim = 0;
      request.once('response', done);
      // Without a listener, Node.js closes the connection after a 101, and the request ends without an error.
      request.once('upgrade', (refused: IncomingMessage, socket: Duplex) => {
        socket.destroy();
        done(refused);
      });
      // Each interim answer costs time, and a receiver can send them as fast as the network allows.
      request.on('information', () => {
        interim++;
        if (interim === MAX_INTERIM) request.destroy(new Error('The receiver sends interim answers only.'));
      });
      request.on('error', fail); // also after the answer, when the rest of it is not read
      request.end(body);
    });
    const status = answer.statusCode ?? 0;
    return {
      status,
      response: status === SWITCHING ? '' : await beginningOf(answer),
      failure: failureOf(status),
    };
  } finally {
    agent.destroy();
  }
}

/** Resolves with the beginning of the body. The rest is not read, and the connection is closed. */
async function beginningOf(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  const late = setTimeout(() => answer.destroy(), MAX_ANSWER_MS);
  try {
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      size += chunk.byteLength;
      if (size >= MAX_RESPONSE_BYTES) break;
    }
  } catch {
    // The status has arrived, so a body that breaks off changes nothing.
  } finally {
    clearTimeout(late);
    answer.destroy();
  }
  return Buffer.concat(chunks).subarray(0, MAX_RESPONSE_BYTES).toString('utf8');
}

function failureOf(status: number): Sent['failure'] {
  if (status >= 200 && status < 300) return null;
  if (status >= 300 && status < 400)
    return {
      code: 'redirect',
      message: `The receiver answered with a redirect (${status}), which is not followed. Give the hook the URL to which it leads.`,
    };
  if (status === 410)
    return { code: 'gone', message: 'The receiver answered 410 Gone: it wants no more requests.' };
  return { code: 'http_status', message: `The receiver answered with the status ${status}.` };
}

function categoryOf(error: unknown): FailureCategory | undefined {
  return error instanceof DatasourceFailure ? error.category : categoryOfSocketError(error);
}
