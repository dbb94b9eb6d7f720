import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The longest path of a unix socket on Linux, without the final zero. */
const PATH_LIMIT_BYTES = 107;
/** The length of the name of a socket in a folder of its own, with the slash. */
const NAME_LIMIT_BYTES = 8;

/**
 * The directory in which kernels' sockets are made. This is `runDir`, unless a path in it would be
 * too long for a socket. Then it is a private directory below the system's temporary one, which
 * disposing removes.
 */
export class SocketDirectory implements Disposable {
  readonly path: string;
  readonly #isOwn: boolean;

  constructor(runDir: string) {
    this.#isOwn = Buffer.byteLength(join(runDir, newName())) + NAME_LIMIT_BYTES > PATH_LIMIT_BYTES;
    this.path = this.#isOwn ? mkdtempSync(join(tmpdir(), 'troupe-run-')) : runDir;
  }

  /** Returns a path that was not used before. */
  newPath(): string {
    return join(this.path, newName());
  }

  [Symbol.dispose](): void {
    if (this.#isOwn) rmSync(this.path, { recursive: true, force: true });
  }
}

function newName(): string {
  return randomBytes(8).toString('hex');
}
