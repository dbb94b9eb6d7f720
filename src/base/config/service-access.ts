/** The `SERVICE_*` variables by which the command line finds a server. Only this folder reads the environment. */
import { Secret } from '../caller/secret.ts';

/** The environment's settings for the server to use. */
export interface ServiceAccess {
  /** Without `/api/v3` and without a slash at the end. */
  readonly baseUrl: string | undefined;
  readonly accessToken: Secret | undefined;
  readonly workspaceId: string | undefined;
  readonly sessionId: string | undefined;
}

/** Returns the `SERVICE_*` variables of `env`. An empty variable counts as unset. */
export function readServiceAccess(
  env: Readonly<Record<string, string | undefined>> = process.env,
): ServiceAccess {
  const token = env.SERVICE_ACCESS_TOKEN || undefined;
  return {
    baseUrl: env.SERVICE_BASE_URL?.replace(/(?<!\/)\/+$/, '') || undefined,
    accessToken: token === undefined ? undefined : new Secret(token),
    workspaceId: env.SERVICE_WORKSPACE_ID || undefined,
    sessionId: env.SERVICE_SESSION_ID || undefined,
  };
}

/** Returns the environment of this process, for functions that take an environment as an argument. */
export function processEnvironment(): Readonly<Record<string, string | undefined>> {
  return process.env;
}
