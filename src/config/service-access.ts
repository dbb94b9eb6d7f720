/** How the command line finds a server: the `SERVICE_*` names of the API, read here because all of the environment is. */
import { Secret } from '#src/core/secret.ts';

export interface ServiceAccess {
  /** Without `/api/v3` and without a slash at its end. */
  readonly baseUrl: string | undefined;
  readonly accessToken: Secret | undefined;
  readonly workspaceId: string | undefined;
  readonly sessionId: string | undefined;
}

/** Reads `SERVICE_BASE_URL`, `SERVICE_ACCESS_TOKEN`, `SERVICE_WORKSPACE_ID` and `SERVICE_SESSION_ID`; empty is unset. */
export function readServiceAccess(
  env: Readonly<Record<string, string | undefined>> = process.env,
): ServiceAccess {
  const token = env.SERVICE_ACCESS_TOKEN || undefined;
  return {
    baseUrl: env.SERVICE_BASE_URL?.replace(/\/+$/, '') || undefined,
    accessToken: token === undefined ? undefined : new Secret(token),
    workspaceId: env.SERVICE_WORKSPACE_ID || undefined,
    sessionId: env.SERVICE_SESSION_ID || undefined,
  };
}

/** The environment of this process, for what reads it through functions that can be given another. */
export function processEnvironment(): Readonly<Record<string, string | undefined>> {
  return process.env;
}
