import type { Config } from '#src/config.ts';
import type { AsyncDisposableStack } from '#src/core/async-disposable-stack.ts';
import type { Log } from '#src/core/log.ts';
import { findHostScript } from '#src/kernel/host-script.ts';
import type { KernelHost } from '#src/kernel/kernel-host.ts';
import { LocalModelProcess } from '#src/kernel/local-model.ts';

const DEFAULT_CONTEXT_TOKENS = 4096;
const MIB = 1024 * 1024;

export interface LocalModelOptions {
  readonly config: Pick<Config, 'localModel' | 'localModelMemoryMb' | 'modelContextTokens'>;
  readonly log: Log;
  readonly host: KernelHost;
}

/** Returns the process that runs the configured local model, or undefined when none is configured. */
export function openLocalModel(
  { config: { localModel, localModelMemoryMb, modelContextTokens }, log, host }: LocalModelOptions,
  stack: AsyncDisposableStack,
): LocalModelProcess | undefined {
  if (localModel === undefined) return undefined;
  return stack.use(
    new LocalModelProcess({
      host,
      path: localModel,
      script: findHostScript('local_model.py'),
      contextTokens: modelContextTokens || DEFAULT_CONTEXT_TOKENS,
      memoryBytes: localModelMemoryMb === 0 ? null : localModelMemoryMb * MIB,
      log,
    }),
  );
}
