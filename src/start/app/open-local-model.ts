import type { AsyncDisposableStack } from '#src/base/async/async-disposable-stack.ts';
import type { Config } from '#src/base/config/config.ts';
import type { Log } from '#src/base/log/log.ts';
import { LocalModelProcess } from '#src/confined/processes/children/local-model.ts';
import { ConnectedModel } from '#src/confined/processes/children/local-model-connection.ts';
import type { ChildStarter } from '#src/confined/processes/confined-child.ts';
import { findHostScript } from '#src/confined/processes/host/host-script.ts';
import type { Ground } from './ground.ts';

const DEFAULT_CONTEXT_TOKENS = 4096;
const MIB = 1024 * 1024;

/** Returns the configured local model, which one process of this server runs, or undefined when none is configured. */
export function openLocalModel(
  { config, log, prerequisites: { host, startModel } }: Ground,
  stack: AsyncDisposableStack,
): ConnectedModel | undefined {
  const model = localModelOf(config, log, host);
  if (model === undefined) return undefined;
  stack.use(model);
  return new ConnectedModel(model, startModel ?? (() => model.start()));
}

/** Returns the process that runs the configured local model once it is started, or undefined when none is configured. */
export function localModelOf(
  { localModel, localModelMemoryMb, modelContextTokens }: Config,
  log: Log,
  host: ChildStarter,
): LocalModelProcess | undefined {
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
