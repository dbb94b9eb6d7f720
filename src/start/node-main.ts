/** The process of a kernel node (`troupe node join`). Only this file and the command line end it. */
import './process/begin.ts'; // first: before anything is opened
import { Secret } from '#src/base/caller/secret.ts';
import { ConfigError, loadConfig } from '#src/base/config/config.ts';
import { showSourcePlaces } from '#src/base/install/source-places.ts';
import { openLog } from '#src/base/log/log.ts';
import { say } from './process/announce.ts';
import { type NodeArguments, serveAsNode } from './process/serve-as-node.ts';

/** Runs the node, and ends the process. */
export async function join(given: NodeArguments): Promise<never> {
  process.umask(0o077);
  process.stderr.on('error', () => {});
  showSourcePlaces();
  try {
    const { config } = loadConfig();
    const secrets = Object.values(config).filter((value): value is Secret => value instanceof Secret);
    const log = openLog({ level: config.logLevel, secrets, isShared: false });
    const code = await serveAsNode({ config, log }, given);
    log.flush();
    process.exit(code);
  } catch (error) {
    const problems =
      error instanceof ConfigError
        ? error.problems
        : [error instanceof Error ? error.message : String(error)];
    for (const problem of problems) say(`troupe: ${problem}`);
    process.exit(1);
  }
}
