/** Everything that is compared, in order. */
import type { Comparison } from './comparison.ts';
import { creates, gets, serverStart } from './http-comparisons.ts';
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
];
