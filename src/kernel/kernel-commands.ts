/** The frames that a kernel understands: marimo's commands with our `seq`, values of UI elements, answers to calls. */
import { encodeFrame, framedParts } from './frame-decoder.ts';
import type { KernelLaunch, ScratchpadRequest } from './kernel.ts';
import type { CellConfig } from './messages.ts';

const CONTROL = 1;
const UI = 2;
const CALL = 5;

/** marimo's words for a cell's configuration. Members that are not given are not sent: the kernel keeps what it has. */
export function toMarimoConfig(config: CellConfig): Record<string, unknown> {
  return {
    ...(config.disabled === undefined ? {} : { disabled: config.disabled }),
    ...(config.hideCode === undefined ? {} : { hide_code: config.hideCode }),
    ...(config.expandOutput === undefined ? {} : { expand_output: config.expandOutput }),
    ...(config.column === undefined ? {} : { column: config.column }),
  };
}

export function toMarimoConfigs(
  configs: Readonly<Record<string, CellConfig>>,
): Record<string, Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(configs).map(([cellId, config]) => [cellId, toMarimoConfig(config)]),
  );
}

export function controlFrame(seq: number, type: string, fields: Readonly<Record<string, unknown>>): Buffer {
  return encodeFrame(CONTROL, { ...fields, type, seq });
}

export function uiFrame(values: Readonly<Record<string, unknown>>, token: string): Buffer {
  return encodeFrame(UI, uiUpdate(values, token));
}

/** The number of the call before the JSON, so that no JSON, however made, answers another call. */
export function callFrame(id: number, json: readonly (string | Uint8Array)[]): Uint8Array[] {
  const number = Buffer.allocUnsafe(4);
  number.writeUInt32LE(id >>> 0);
  return framedParts(CALL, [
    number,
    ...json.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)),
  ]);
}

/** Registers every cell and runs none. */
export function createNotebook(launch: KernelLaunch): Record<string, unknown> {
  return {
    executionRequests: launch.cells.map(({ cellId, code }) => ({ cellId, code, request: null })),
    cellIds: launch.cells.map(({ cellId }) => cellId),
    setUiElementValueRequest: uiUpdate(launch.uiValues ?? {}, 'open'),
    autoRun: false,
    request: null,
  };
}

export function executeScratchpad(request: ScratchpadRequest): Record<string, unknown> {
  return {
    code: request.code,
    runId: request.runId,
    // Nobody answers an agent's input(): it is to fail at once.
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

/** marimo wants all eight members; this path makes it write tracebacks as plain text. */
function httpRequest(meta: Record<string, unknown>): Record<string, unknown> {
  const nothing = { base_url: {}, headers: {}, query_params: {}, path_params: {}, cookies: {}, user: {} };
  return { ...nothing, url: { path: '/api/kernel/execute' }, meta };
}

function uiUpdate(values: Readonly<Record<string, unknown>>, token: string): Record<string, unknown> {
  return {
    type: 'update-ui-element',
    objectIds: Object.keys(values),
    values: Object.values(values),
    token,
  };
}
