/** `node:fs/promises` for the server of a simulation: the world stops until a file has answered. */
import * as files from 'node:fs/promises';
import { world } from '../world/world.ts';

export * from 'node:fs/promises';

type Act = (...args: never[]) => Promise<unknown>;

function stopping<T extends Act>(act: T): T {
  return ((...args: never[]) => world().stopWorldFor(() => act(...args))) as T;
}

/** The methods of an open file that return no promise. */
const AT_ONCE: ReadonlySet<string | symbol> = new Set([
  'createReadStream',
  'createWriteStream',
  'on',
  'once',
  'off',
  'emit',
]);

/** Returns the open file with methods for which the world stops. Some of them return a promise without being `async`, such as `close`. */
function opened<T extends object>(handle: T): T {
  return new Proxy(handle, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]) => {
        const call = () => Reflect.apply(member, target, args) as unknown;
        return AT_ONCE.has(name) ? call() : world().stopWorldFor(call);
      };
    },
  });
}

export const readFile = stopping(files.readFile as Act);
export const writeFile = stopping(files.writeFile as Act);
export const lstat = stopping(files.lstat as Act);
export const stat = stopping(files.stat as Act);
export const rm = stopping(files.rm as Act);
export const mkdir = stopping(files.mkdir as Act);
export const rename = stopping(files.rename as Act);
export const rmdir = stopping(files.rmdir as Act);
export const unlink = stopping(files.unlink as Act);
export const chmod = stopping(files.chmod as Act);
export const copyFile = stopping(files.copyFile as Act);
export const readdir = async (path: string, options?: object): Promise<unknown[]> => {
  const names: unknown[] = await world().stopWorldFor(() => files.readdir(path, { ...options }));
  return names.sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
};
export const open = async (...args: Parameters<typeof files.open>): Promise<object> =>
  opened(await world().stopWorldFor(() => files.open(...args)));

/** Returns a folder that gives out its entries in the order of their names, whatever the order of the disk. */
export async function opendir(path: string): Promise<object> {
  const entries = await world().stopWorldFor(() => files.readdir(path, { withFileTypes: true }));
  const sorted = entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  let at = 0;
  const close = async () => {
    at = sorted.length;
  };
  return {
    path,
    read: async () => sorted[at++] ?? null,
    close,
    [Symbol.asyncDispose]: close,
    async *[Symbol.asyncIterator]() {
      yield* sorted;
    },
  };
}

function nameOf(entry: unknown): string {
  return typeof entry === 'object' && entry !== null && 'name' in entry ? String(entry.name) : String(entry);
}
