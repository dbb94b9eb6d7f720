/**
 * Sends spans to an OTLP receiver over HTTP, as JSON (opentelemetry-proto 1.x, `ExportTraceServiceRequest`). The queue is
 * bounded: when the receiver is slow or gone, spans are discarded and counted, and nothing else notices.
 */
import { anySignal } from '../async/any-signal.ts';
import type { Attributes, AttributeValue, SpanRecord, SpanSink } from './tracer.ts';

export interface OtlpExporterOptions {
  /** The address of the receiver; `/v1/traces` is added. */
  readonly url: string;
  readonly version: string;
  /** Called with the number of spans that were discarded, and why. */
  readonly onDrop: (count: number, reason: 'queue_full' | 'refused') => void;
  /** Called when sending begins to fail, and when it works again. */
  readonly onChange: (isWorking: boolean, reason: string) => void;
  readonly send?: typeof fetch;
}

const MAX_QUEUED = 2_048;
const MAX_BATCH = 512;
const SEND_EVERY_MS = 1_000;
const TIMEOUT_MS = 5_000;
/** How long a server that stops waits for the receiver, in total. */
const LAST_TIMEOUT_MS = 1_500;

export class OtlpExporter implements SpanSink, AsyncDisposable {
  readonly #options: OtlpExporterOptions;
  readonly #url: string;
  #queue: SpanRecord[] = [];
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;
  #isWorking = true;
  readonly #closing = new AbortController();

  constructor(options: OtlpExporterOptions) {
    this.#options = options;
    this.#url = `${options.url.replace(/(?<!\/)\/+$/, '')}/v1/traces`;
  }

  add(span: SpanRecord): void {
    if (this.#queue.length >= MAX_QUEUED) {
      this.#options.onDrop(1, 'queue_full');
      return;
    }
    this.#queue.push(span);
    if (this.#queue.length >= MAX_BATCH) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), SEND_EVERY_MS).unref();
  }

  /** Sends the remaining spans, for a short time only. */
  async [Symbol.asyncDispose](): Promise<void> {
    const timer = setTimeout(() => this.#closing.abort(), LAST_TIMEOUT_MS);
    await this.#sending;
    clearTimeout(this.#timer);
    if (this.#queue.length > 0) await this.#sendBatch(this.#queue.splice(0, MAX_QUEUED));
    clearTimeout(timer);
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#sending !== undefined || this.#queue.length === 0) return;
    this.#sending = this.#sendBatch(this.#queue.splice(0, MAX_BATCH)).finally(() => {
      this.#sending = undefined;
      if (this.#queue.length > 0) this.#timer ??= setTimeout(() => this.#flush(), SEND_EVERY_MS).unref();
    });
  }

  async #sendBatch(spans: readonly SpanRecord[]): Promise<void> {
    const { send = fetch, version, onDrop } = this.#options;
    try {
      const response = await send(this.#url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(exportRequest(spans, version)),
        redirect: 'error',
        signal: anySignal(AbortSignal.timeout(TIMEOUT_MS), this.#closing.signal),
      });
      await response.body?.cancel();
      if (response.ok) return this.#note(true, '');
      onDrop(spans.length, 'refused');
      this.#note(false, `status ${response.status}`);
    } catch (error) {
      onDrop(spans.length, 'refused');
      this.#note(false, error instanceof Error ? error.name : 'unknown');
    }
  }

  #note(isWorking: boolean, reason: string): void {
    if (isWorking === this.#isWorking) return;
    this.#isWorking = isWorking;
    this.#options.onChange(isWorking, reason);
  }
}

/** Returns the body of a request, as the JSON mapping of OTLP spells it: ids in hexadecimal, 64-bit integers as text. */
function exportRequest(spans: readonly SpanRecord[], version: string) {
  return {
    resourceSpans: [
      {
        resource: { attributes: attributesOf({ 'service.name': 'troupe', 'service.version': version }) },
        scopeSpans: [{ scope: { name: 'troupe', version }, spans: spans.map(spanOf) }],
      },
    ],
  };
}

const STATUS_ERROR = 2;
/** The codes of span kinds in OTLP. */
const KINDS = { internal: 1, server: 2, client: 3 } as const;

function spanOf({ name, kind, context, parentSpanId, startMs, endMs, attributes, error }: SpanRecord) {
  return {
    traceId: context.traceId,
    spanId: context.spanId,
    ...(parentSpanId === undefined ? {} : { parentSpanId }),
    name,
    kind: KINDS[kind],
    startTimeUnixNano: nanosOf(startMs),
    endTimeUnixNano: nanosOf(endMs),
    attributes: attributesOf(error === undefined ? attributes : { ...attributes, 'error.type': error }),
    status: error === undefined ? {} : { code: STATUS_ERROR },
  };
}

function nanosOf(ms: number): string {
  const whole = Math.floor(ms);
  return `${whole}${String(Math.floor((ms - whole) * 1e6)).padStart(6, '0')}`;
}

function attributesOf(attributes: Attributes) {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: anyValue(value) }));
}

function anyValue(value: AttributeValue) {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}
