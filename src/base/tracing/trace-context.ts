/**
 * The W3C trace context: the trace that a piece of work belongs to, and the span that caused it.
 */
import { randomFillSync } from 'node:crypto';

export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  /** Whether the caller records the trace. */
  readonly isSampled: boolean;
}

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const NO_TRACE = '0'.repeat(32);
const NO_SPAN = '0'.repeat(16);

/**
 * Returns the context of a `traceparent` header; undefined for a malformed one, which is to be ignored (W3C Trace
 * Context, level 1, 3.2.2 and 4.3). Later versions may add fields after the known ones.
 */
export function parseTraceparent(text: string): TraceContext | undefined {
  if (text === '') return undefined;
  const [, version, traceId = '', spanId = '', flags = '', more] = TRACEPARENT.exec(text) ?? [];
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return undefined;
  if (traceId === NO_TRACE || spanId === NO_SPAN) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/** Returns the header for requests in this context. */
export function traceparentOf({ traceId, spanId, isSampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`;
}

/** Returns a new id of `bytes` bytes that are not all zero, in hexadecimal. */
function newId(bytes: 8 | 16): string {
  for (;;) {
    const id = randomFillSync(Buffer.allocUnsafe(bytes)).toString('hex');
    if (!/^0+$/.test(id)) return id;
  }
}

/**
 * Returns the context of a span that `parent` causes. Without a parent, it is the context of a new
 * trace.
 */
export function childOf(
  parent: TraceContext | undefined,
  isSampled = parent?.isSampled ?? false,
): TraceContext {
  return { traceId: parent?.traceId ?? newId(16), spanId: newId(8), isSampled };
}
