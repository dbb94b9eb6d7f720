import type { Scenario } from './scenario.ts';
import { agentCancel } from './scenarios/agent-cancel.ts';
import { agentStreams } from './scenarios/agent-streams.ts';
import { busyKernels } from './scenarios/busy-kernels.ts';
import { cancel } from './scenarios/cancel.ts';
import { chain } from './scenarios/chain.ts';
import { clients } from './scenarios/clients.ts';
import { codeCall } from './scenarios/code-call.ts';
import { consoles } from './scenarios/consoles.ts';
import { creates } from './scenarios/creates.ts';
import { datasourceRows } from './scenarios/datasource-rows.ts';
import { embeddedQueries } from './scenarios/embedded-queries.ts';
import { execute } from './scenarios/execute.ts';
import { fanOut } from './scenarios/fan-out.ts';
import { firstSeconds } from './scenarios/first-seconds.ts';
import { gets } from './scenarios/gets.ts';
import { jobs } from './scenarios/jobs.ts';
import { kernelDeath } from './scenarios/kernel-death.ts';
import { mcpCalls } from './scenarios/mcp-calls.ts';
import { memory } from './scenarios/memory.ts';
import { mirroredStreams } from './scenarios/mirrored-streams.ts';
import { nodes } from './scenarios/nodes.ts';
import { output } from './scenarios/output.ts';
import { pages } from './scenarios/pages.ts';
import { runSubmits } from './scenarios/run-submits.ts';
import { serverStart } from './scenarios/server-start.ts';
import { sessionConfined } from './scenarios/session-confined.ts';
import { sessionOpen } from './scenarios/session-open.ts';
import { sessionStarts } from './scenarios/session-starts.ts';
import { sizing } from './scenarios/sizing.ts';
import { stalledReaders } from './scenarios/stalled-readers.ts';
import { stored } from './scenarios/stored.ts';
import { tenants } from './scenarios/tenants.ts';
import { workers } from './scenarios/workers.ts';

/** All scenarios, in the order in which they run. */
export const SCENARIOS: readonly Scenario[] = [
  serverStart,
  sessionOpen,
  sessionConfined,
  sessionStarts,
  firstSeconds,
  execute,
  codeCall,
  mcpCalls,
  pages,
  runSubmits,
  chain,
  cancel,
  kernelDeath,
  output,
  gets,
  creates,
  busyKernels,
  datasourceRows,
  embeddedQueries,
  fanOut,
  mirroredStreams,
  stalledReaders,
  agentStreams,
  agentCancel,
  jobs,
  consoles,
  clients,
  memory,
  stored,
  sizing,
  tenants,
  workers,
  nodes,
];
