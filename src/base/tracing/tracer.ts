/**
 * Spans of the server's work, for an OTLP receiver. There is a tracer only when a receiver is configured, so that tracing
 * costs nothing otherwise: callers hold `Tracer | undefined`. A trace that begins here is sampled by chance; one that a
 * client began is recorded if the client records it.
 */
import { childOf, type TraceContext, traceparentOf } from './trace-context.ts';

export type AttributeValue = string | number | boolean;
export type Attributes = Readonly<Record<string, AttributeValue>>;

/** The role of a span: it covers an incoming request, an outgoing one, or neither. */
export type SpanKind = 'internal' | 'server' | 'client';

/** A span that has ended. */
export interface SpanRecord {
  readonly name: string;
  readonly kind: SpanKind;
  readonly context: TraceContext;
  readonly parentSpanId: string | undefined;
  /** Milliseconds since 1970, with fractions. */
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Attributes;
  /** The code of a failure; never a message, which may contain users' text. */
  readonly error: string | undefined;
}

export interface SpanOptions {
  readonly kind?: SpanKind;
  readonly parent?: TraceContext | undefined;
  readonly attributes?: Attributes;
}

export interface Span {
  readonly context: TraceContext;
  /** The context as a header. */
  readonly traceparent: string;
  /** Ends the span. Called once. `error` is the code of the failure. */
  end(end?: { readonly attributes?: Attributes; readonly error?: string | undefined }): void;
}

/** Takes spans that have ended; never throws and never waits. */
export interface SpanSink {
  add(span: SpanRecord): void;
}

export class Tracer {
  readonly #sink: SpanSink;
  readonly #sampleShare: number;

  /** `sampleShare` is the share, from 0 to 1, of the traces beginning here that are recorded. */
  constructor(sink: SpanSink, sampleShare: number) {
    this.#sink = sink;
    this.#sampleShare = sampleShare;
  }

  /**
   * Begins a span. If its trace is not recorded, the span is not recorded either, but passes the
   * trace on. Returns undefined for a trace that would begin here and is not sampled.
   */
  start(name: string, { kind = 'internal', parent, attributes = {} }: SpanOptions = {}): Span | undefined {
    const isSampled = parent?.isSampled ?? Math.random() < this.#sampleShare;
    if (parent === undefined && !isSampled) return undefined;
    const context = childOf(parent, isSampled);
    const startMs = performance.timeOrigin + performance.now();
    return {
      context,
      traceparent: traceparentOf(context),
      end: ({ attributes: more = {}, error } = {}) => {
        if (!isSampled) return;
        this.#sink.add({
          name,
          kind,
          context,
          parentSpanId: parent?.spanId,
          startMs,
          endMs: performance.timeOrigin + performance.now(),
          attributes: { ...attributes, ...more },
          error,
        });
      },
    };
  }

  /** Records a span whose times are known, such as a run that an earlier server process began. */
  record(span: SpanRecord): void {
    if (span.context.isSampled) this.#sink.add(span);
  }
}
