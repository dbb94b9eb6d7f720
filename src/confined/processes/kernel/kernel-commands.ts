/** The frames that a kernel understands: marimo's commands with our `seq`, interrupts of commands, results of calls. */
import { randomUUID } from 'node:crypto';
import { encodeLongFrame, framedParts } from '../frame-decoder.ts';
import type { FrameParts } from '../frame-sender.ts';
import type {
  CellEdits,
  CompletionRequest,
  ElementCommand,
  KernelLaunch,
  ScratchpadRequest,
} from './kernel.ts';
import type { KernelCellConfig } from './messages.ts';

const CONTROL = 1;
const COMPLETION = 3;
export const INTERRUPT = 4;
const CALL = 5;
const FOLLOW = 7;

/** Returns a cell's configuration with marimo's names. Members that are not given are not sent, so the kernel keeps them. */
export function toMarimoConfig(config: KernelCellConfig): Record<string, unknown> {
  return {
    ...(config.disabled === undefined ? {} : { disabled: config.disabled }),
    ...(config.hideCode === undefined ? {} : { hide_code: config.hideCode }),
    ...(config.expandOutput === undefined ? {} : { expand_output: config.expandOutput }),
    ...(config.column === undefined ? {} : { column: config.column }),
  };
}

export function toMarimoConfigs(
  configs: Readonly<Record<string, KernelCellConfig>>,
): Record<string, Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(configs).map(([cellId, config]) => [cellId, toMarimoConfig(config)]),
  );
}

/** Returns the frame of a command; a promise when the command is long. Its fields must not change. */
export function controlFrame(
  seq: number,
  type: string,
  fields: Readonly<Record<string, unknown>>,
): FrameParts | Promise<FrameParts> {
  return encodeLongFrame(CONTROL, { ...fields, type, seq });
}

/** Returns the frame that names the command that the next SIGINT interrupts. */
export function interruptFrame(seq: number): Buffer {
  return Buffer.concat(framedParts(INTERRUPT, [u32(seq)]));
}

/** Returns the result of a call. The call's number stands before it, so no result can pass for that of another call. */
export function callFrame(id: number, parts: readonly (string | Uint8Array)[]): Uint8Array[] {
  return framedParts(CALL, [
    u32(id),
    ...parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)),
  ]);
}

/** Asks for completions of code. The result is a message, and no command ends. */
export function completionFrame(request: CompletionRequest): FrameParts | Promise<FrameParts> {
  return encodeLongFrame(COMPLETION, { ...request, type: 'code-completion' });
}

/**
 * Says that a page begins to follow the notebook. The number 0 says that the last page has left.
 */
export function followFrame(page: number): Buffer {
  return Buffer.concat(framedParts(FOLLOW, [u32(page)]));
}

/** Returns the members of a command of a UI element. Cells that depend on a value run, as in marimo's own page. */
export function elementCommand(command: ElementCommand): Record<string, unknown> {
  const token = randomUUID(); // the token by which marimo recognises a command that arrives in two ways
  switch (command.type) {
    case 'update-ui-element':
      return { objectIds: command.objectIds, values: command.values, token, reactive: true };
    case 'model':
      return {
        modelId: command.modelId,
        message: command.message,
        buffers: command.buffers,
        token,
        reactive: true,
      };
    default: {
      const { type, ...fields } = command;
      return fields;
    }
  }
}

/** Returns the members of the command for changes of the notebook without a run. */
export function editCells({ codes, configs, deleteIds }: CellEdits): Record<string, unknown> {
  return { codes, configs: toMarimoConfigs(configs), deleteIds };
}

/** Returns the command that registers every cell and runs none. */
export function createNotebook(launch: KernelLaunch): Record<string, unknown> {
  return {
    executionRequests: launch.cells.map(({ cellId, code }) => ({ cellId, code, request: null })),
    cellIds: launch.cells.map(({ cellId }) => cellId),
    setUiElementValueRequest: {
      type: 'update-ui-element',
      objectIds: Object.keys(launch.uiValues ?? {}),
      values: Object.values(launch.uiValues ?? {}),
      token: 'open',
    },
    autoRun: false,
    request: null,
    environment: launch.secrets ?? {},
  };
}

export function executeScratchpad(request: ScratchpadRequest): Record<string, unknown> {
  return {
    code: request.code,
    keep: request.keep,
    runId: request.runId,
    traceparent: request.traceparent,
    // input() fails at once, because there is no terminal.
    allowStdin: false,
    notebookCells: request.cells.map(({ cellId, code, name, config, version }) => ({
      id: cellId,
      code,
      name,
      version,
      config: toMarimoConfig(config),
    })),
    cellOutputs: { output: request.outputs ?? {}, console_outputs: request.consoles ?? {} },
    request: httpRequest({ revision: request.revision ?? 0, app_options: request.appOptions ?? {} }),
  };
}

/**
 * Returns the HTTP request that marimo expects, with all eight members. The path in it makes marimo
 * write tracebacks as plain text.
 */
function httpRequest(meta: Record<string, unknown>): Record<string, unknown> {
  const nothing = { base_url: {}, headers: {}, query_params: {}, path_params: {}, cookies: {}, user: {} };
  return { ...nothing, url: { path: '/api/kernel/execute' }, meta };
}

function u32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32LE(value >>> 0);
  return bytes;
}
