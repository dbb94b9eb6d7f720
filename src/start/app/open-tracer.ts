import type { AsyncDisposableStack } from '#src/base/async/async-disposable-stack.ts';
import { VERSION } from '#src/base/install/version.ts';
import type { Tracer } from '#src/base/tracing/tracer.ts';
import type { AppOptions } from './app-interface.ts';

/** Resolves with a recorder of spans; undefined when no receiver is configured, and then nothing of it is loaded. */
export async function openTracer(
  { config: { otlpUrl, traceSamplePercent }, log, prerequisites: { metrics } }: AppOptions,
  stack: AsyncDisposableStack,
): Promise<Tracer | undefined> {
  if (otlpUrl === undefined) return undefined;
  const [{ OtlpExporter }, { Tracer }] = await Promise.all([
    import('#src/base/tracing/otlp-exporter.ts'),
    import('#src/base/tracing/tracer.ts'),
  ]);
  const exporter = stack.use(
    new OtlpExporter({
      url: otlpUrl,
      version: VERSION,
      onDrop: (count, reason) => metrics.spansDropped.of(reason).add(count),
      onChange(isWorking, reason) {
        if (isWorking) log.info({}, 'the receiver of traces takes spans again');
        else log.warn({ because: reason }, 'the receiver of traces takes no spans: they are discarded');
      },
    }),
  );
  return new Tracer(exporter, traceSamplePercent / 100);
}
