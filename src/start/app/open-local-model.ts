import type { AsyncDisposableStack } from '#src/base/async/async-disposable-stack.ts';
import type { Config } from '#src/base/config/config.ts';
import type { Log } from '#src/base/log/log.ts';
import { type LocalModelAddress, LocalModelProcess } from '#src/confined/processes/children/local-model.ts';
import { ConnectedModel } from '#src/confined/processes/children/local-model-connection.ts';
import type { ChildStarter } from '#src/confined/processes/confined-child.ts';
import { findHostScript } from '#src/confined/processes/host/host-script.ts';

const DEFAULT_CONTEXT_TOKENS = 4096;
const MIB = 1024 * 1024;

export interface LocalModelOptions {
  readonly config: Pick<Config, 'localModel' | 'localModelMemoryMb' | 'modelContextTokens'>;
  readonly log: Log;
  readonly host: ChildStarter;
}

/** Returns the configured local model, which one process of this server runs, or undefined when none is configured. */
export function openLocalModel(
  options: LocalModelOptions & {
    /** Starts the model in the process that runs it, if that is another one. */
    readonly startElsewhere: (() => Promise<LocalModelAddress>) | undefined;
  },
  stack: AsyncDisposableStack,
): ConnectedModel | undefined {
  const model = localModelOf(options);
  if (model === undefined) return undefined;
  stack.use(model);
  return new ConnectedModel(model, options.startElsewhere ?? (() => model.start()));
}

/** Returns the process that runs the configured local model once it is started, or undefined when none is configured. */
export function localModelOf({
  config: { localModel, localModelMemoryMb, modelContextTokens },
  log,
  host,
}: LocalModelOptions): LocalModelProcess | undefined {
  if (localModel === undefined) return undefined;
  return new LocalModelProcess({
    host,
    path: localModel,
    script: findHostScript('local_model.py'),
    contextTokens: modelContextTokens || DEFAULT_CONTEXT_TOKENS,
    memoryBytes: localModelMemoryMb === 0 ? null : localModelMemoryMb * MIB,
    log,
  });
}
