import type { Config } from '#src/base/config/config.ts';
import { checkDataDirectory, checkDisk, checkPort, checkStoreAndKeyring } from './data.ts';
import type { Finding } from './finding.ts';
import { checkOutside } from './outside.ts';
import { checkPython } from './python.ts';
import { checkBinaries, checkNode } from './runtime.ts';

/** Yields one or more findings for each thing that a server with these settings needs on this machine. Changes nothing. */
export async function* examine(config: Config): AsyncGenerator<Finding, void, undefined> {
  yield checkNode(process.versions.node);
  yield* await checkBinaries(config.uwebsockets);
  yield* await checkPython(config);
  yield* await checkDataDirectory(config);
  yield* await checkStoreAndKeyring(config);
  yield checkDisk(config);
  yield await checkPort(config);
  yield* await checkOutside(config);
}
