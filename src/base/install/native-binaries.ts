/** The facts that set-up knows about the native binaries: the copy of uWebSockets.js that runs, and why a binary does not load. */
import { createRequire } from 'node:module';
import { PACKAGE_ROOT } from './package-root.ts';
import { importSetUp } from './set-up-module.ts';

/** A copy of uWebSockets.js. */
export interface UwsCopy {
  readonly path: string;
  /** The package of the binary, or the setting that names the binary, for people. */
  readonly origin: string;
}

interface CopySetUp {
  copyInUse(root: string, named: string | undefined): UwsCopy;
}

interface BinarySetUp {
  unloadable(name: string, text: string): string;
}

/** Resolves with the copy of uWebSockets.js that a server loads. `named` is the path in the setting of the operator, if there is one. */
export async function uwsCopyInUse(named: string | undefined): Promise<UwsCopy> {
  return (await importSetUp<CopySetUp>('uwebsockets')).copyInUse(PACKAGE_ROOT, named);
}

/** Loads a copy of uWebSockets.js, which is a CommonJS module. Throws when it does not load or is another module. */
export function requireUws({ path }: UwsCopy): unknown {
  const loaded: unknown = createRequire(import.meta.url)(path);
  if (typeof loaded === 'object' && loaded !== null && 'App' in loaded) return loaded;
  throw new Error('It is not uWebSockets.js.');
}

/** Resolves with one line that says why a binary does not load, with the solution. */
export async function whyUnloadable(name: string, cause: unknown): Promise<string> {
  const text = cause instanceof Error ? cause.message : String(cause);
  return (await importSetUp<BinarySetUp>('node-packages')).unloadable(name, text);
}
