/** The messages for a person at start and at the end. They go to stderr, because standard output is the log. */

import type { Config } from '#src/base/config/config.ts';
import type { Bootstrapped } from '#src/people/auth/bootstrap.ts';

export interface Announced {
  readonly url: string;
  readonly config: Config;
  readonly bootstrapped: Bootstrapped;
}

/** Prints where the server listens, and how an empty server was initialised. */
export function announce({ url, config, bootstrapped }: Announced): void {
  const { host, listenSocket } = config;
  say(`Troupe listens on ${url}`);
  if (listenSocket !== undefined) say(`  and for proxies of this machine on ${listenSocket}`);
  if (bootstrapped.kind === 'generated') {
    say(`  workspace     ${bootstrapped.workspaceId}`);
    // If stderr is not a terminal it may be a log, which is kept and has other readers.
    if (process.stderr.isTTY) say(`  access token  ${bootstrapped.token.reveal()} (shown this once)`);
    say(`  ${process.stderr.isTTY ? 'kept in       ' : 'access token  in '}${bootstrapped.file}`);
  } else if (bootstrapped.kind === 'existing' && bootstrapped.ignored) {
    say('  TROUPE_BOOTSTRAP_TOKEN is ignored: this data directory has its own credentials.');
  }
  if (host === '0.0.0.0' || host === '::') say('  It is reachable from other machines, without TLS.');
}

/** Prints how kernels of this machine are confined, or that kernels run on other machines. */
export function sayWhereKernelsRun(
  {
    kernelNodes,
    kernelNetwork,
    kernelConfinement,
    nodesPlacement,
  }: Pick<Config, 'kernelNodes' | 'kernelNetwork' | 'kernelConfinement' | 'nodesPlacement'>,
  confinement: string,
): void {
  if (kernelNodes !== 'none') {
    say('  kernels run on kernel nodes: `troupe nodes invite` prints the command that adds one');
    if (nodesPlacement === 'spread')
      say(
        '  kernels of one workspace may run on several nodes, and SQLite files must not be written from two: see TROUPE_NODES_PLACEMENT',
      );
    return;
  }
  say(`  kernels are confined ${confinement}`);
  if (kernelNetwork === 'host' && kernelConfinement !== 'off')
    say(
      '  notebook code reaches every address that this machine reaches, its own services included: TROUPE_KERNEL_NETWORK=none ends that',
    );
}

export function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
