/** Everything that is compared, in order. */
import type { Comparison } from './comparison.ts';
import { commandRun, convertFiles, exportPage } from './file-comparisons.ts';
import { creates, gets, serverStart } from './http-comparisons.ts';
import {
  longCellEdit,
  longCellsReady,
  manyCellsEdit,
  manyCellsReady,
  manyCellsRun,
} from './large-comparisons.ts';
import { fanOut, output } from './output-comparisons.ts';
import {
  cancel,
  chain,
  codeCall,
  eightSessions,
  kernelDeath,
  run,
  sessionReady,
} from './session-comparisons.ts';

export const COMPARISONS: readonly Comparison[] = [
  sessionReady,
  run,
  codeCall,
  eightSessions,
  chain,
  cancel,
  gets,
  creates,
  kernelDeath,
  fanOut,
  output,
  serverStart,
  manyCellsReady,
  manyCellsRun,
  manyCellsEdit,
  longCellsReady,
  longCellEdit,
  commandRun,
  convertFiles,
  exportPage,
];
