/** A receiver of traces over HTTP, which checks each request against the schema of OTLP. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { Owner } from '../server-fixture.ts';

const text = { type: 'string' } as const;
const closed = (properties: object, required: readonly string[] = []) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});
const list = (items: object) => ({ type: 'array', items });
const KeyValue = closed(
  {
    key: text,
    value: {
      oneOf: [
        closed({ stringValue: text }, ['stringValue']),
        closed({ boolValue: { type: 'boolean' } }, ['boolValue']),
        closed({ intValue: { type: 'string', pattern: '^-?\\d+$' } }, ['intValue']),
        closed({ doubleValue: { type: 'number' } }, ['doubleValue']),
      ],
    },
  },
  ['key', 'value'],
);
const hex = (digits: number) => ({ type: 'string', pattern: `^(?!0+$)[0-9a-f]{${digits}}$` });
const nanos = { type: 'string', pattern: '^\\d{19}$' };
const Span = closed(
  {
    traceId: hex(32),
    spanId: hex(16),
    parentSpanId: hex(16),
    name: { type: 'string', minLength: 1 },
    kind: { type: 'integer', minimum: 1, maximum: 5 },
    startTimeUnixNano: nanos,
    endTimeUnixNano: nanos,
    attributes: list(KeyValue),
    status: closed({ code: { enum: [0, 1, 2] }, message: text }),
  },
  ['traceId', 'spanId', 'name', 'kind', 'startTimeUnixNano', 'endTimeUnixNano'],
);
const Scope = closed({ name: text, version: text });
const Resource = closed({ attributes: list(KeyValue) });
/** `ExportTraceServiceRequest` in the JSON mapping of opentelemetry-proto 1.x, as far as Troupe uses it. */
const Request = closed(
  {
    resourceSpans: list(
      closed({ resource: Resource, scopeSpans: list(closed({ scope: Scope, spans: list(Span) })) }),
    ),
  },
  ['resourceSpans'],
);

/** A span as it arrived. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
  readonly status: { readonly code?: number };
}

export interface OtlpReceiver {
  readonly url: string;
  readonly spans: readonly ReceivedSpan[];
  /** Faults of requests. */
  readonly complaints: readonly string[];
  /** The status that requests are answered with. */
  status: number;
  /** Resolves with the spans of a trace, once one of them has this name. */
  spanNamed(traceId: string, name: string): Promise<ReceivedSpan>;
}

export async function startOtlpReceiver(owner: Owner): Promise<OtlpReceiver> {
  const validate = new Ajv2020({ strict: false }).compile(Request);
  const spans: ReceivedSpan[] = [];
  const complaints: string[] = [];
  const waits = new Set<() => void>();
  const receiver = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (piece: string) => {
      body += piece;
    });
    request.on('end', () => {
      const value = JSON.parse(body) as { resourceSpans: { scopeSpans: { spans: ReceivedSpan[] }[] }[] };
      if (request.url !== '/v1/traces' || request.headers['content-type'] !== 'application/json')
        complaints.push(`${request.method} ${request.url} ${request.headers['content-type']}`);
      if (!validate(value)) complaints.push(JSON.stringify(validate.errors));
      if (state.status === 200) {
        for (const { scopeSpans } of value.resourceSpans)
          for (const scope of scopeSpans) spans.push(...scope.spans);
      }
      response.writeHead(state.status, { 'content-type': 'application/json' }).end('{}');
      for (const wait of waits) wait();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  owner.after(async () => {
    receiver.closeAllConnections();
    await new Promise((resolve) => receiver.close(resolve));
  });
  const state: OtlpReceiver = {
    url: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`,
    spans,
    complaints,
    status: 200,
    spanNamed: (traceId, name) =>
      new Promise((resolve) => {
        const look = () => {
          const found = spans.find((span) => span.traceId === traceId && span.name === name);
          if (found === undefined) return;
          waits.delete(look);
          resolve(found);
        };
        waits.add(look);
        look();
      }),
  };
  return state;
}
