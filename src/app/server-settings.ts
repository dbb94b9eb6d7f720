/** The settings of the HTTP server that depend on the configuration alone. */
import type { Config } from '#src/config.ts';
import type { RootLog } from '#src/core/log.ts';
import { RequestLog } from '#src/http/edge/request-log.ts';
import type { ServerOptions } from '#src/http/server.ts';

/** Returns the options of the HTTP server that settings have. */
export function serverSettings(config: Config, log: RootLog) {
  return {
    listen: { host: config.host, port: config.port },
    log,
    requestLog: new RequestLog({
      log,
      logsAll: config.logLevel === 'debug' || config.logLevel === 'trace',
      slowMs: config.slowRequestMs,
    }),
    trustedProxies: config.trustedProxies,
    corsOrigins: config.corsOrigins,
    publicUrl: config.publicUrl,
    heartbeatMs: config.heartbeatS * 1000,
  } satisfies Partial<ServerOptions>;
}
