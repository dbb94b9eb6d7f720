import type { OperationId } from '../paths.ts';
import { AGENT_SESSION_OPERATIONS } from './agent-sessions.ts';
import { DATASOURCE_OPERATIONS } from './datasources.ts';
import { EXECUTION_ENVIRONMENT_OPERATIONS } from './execution-environments.ts';
import { FILE_OPERATIONS } from './files.ts';
import { HOOK_OPERATIONS } from './hooks.ts';
import { IDENTITY_OPERATIONS } from './identity.ts';
import { JOB_OPERATIONS } from './jobs.ts';
import { MCP_OPERATIONS } from './mcp.ts';
import { MODEL_OPERATIONS } from './models.ts';
import { NOTEBOOK_SESSION_OPERATIONS } from './notebook-sessions.ts';
import { NOTEBOOK_OPERATIONS } from './notebooks.ts';
import type { OperationSpec } from './operation.ts';
import { PACKAGE_OPERATIONS } from './packages.ts';
import { PAGE_OPERATIONS } from './pages.ts';
import { RUN_OPERATIONS } from './runs.ts';
import { SERVER_OPERATIONS } from './server.ts';
import { SIGN_IN_OPERATIONS } from './sign-in.ts';

/**
 * Every operation: method and path from `PATHS`, and the schemas of its request and responses. The routes spread its entries, the
 * OpenAPI document is made from the routes, and the client derives the types of its calls from it.
 */
export const OPERATIONS = {
  ...NOTEBOOK_OPERATIONS,
  ...NOTEBOOK_SESSION_OPERATIONS,
  ...EXECUTION_ENVIRONMENT_OPERATIONS,
  ...AGENT_SESSION_OPERATIONS,
  ...RUN_OPERATIONS,
  ...JOB_OPERATIONS,
  ...HOOK_OPERATIONS,
  ...DATASOURCE_OPERATIONS,
  ...MODEL_OPERATIONS,
  ...PACKAGE_OPERATIONS,
  ...FILE_OPERATIONS,
  ...IDENTITY_OPERATIONS,
  ...SERVER_OPERATIONS,
  ...MCP_OPERATIONS,
  ...SIGN_IN_OPERATIONS,
  ...PAGE_OPERATIONS,
} satisfies Readonly<Record<OperationId, OperationSpec>>;
