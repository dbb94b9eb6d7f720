/** Connections that repeat the first line of a kernel's connection, as somebody would who has read it on the node. None of them may get anything. */
import { answered, WireSocket } from '../stand-ins/wire.ts';
import { OUTSIDE, type World } from '../world/world.ts';

const KERNEL = '{"op":"kernel"';
const REFUSED = '{"op":"refused"';
const SHARE = 0.2;
const MAX_LATER_MS = 1500;

/** Has such connections in this world. */
export function letGhostsCome(of: World): void {
  answered.set(of, (socket, first) => {
    if (!first.includes(KERNEL) || !of.isDisturbed || !of.ofNodes.is(SHARE)) return;
    of.after(of.ofNodes.next() * MAX_LATER_MS, () => haunt(of, socket, first), OUTSIDE);
  });
}

function haunt(of: World, { dialled }: WireSocket, line: Buffer): void {
  const { port, identity } = dialled;
  if (identity === undefined) return;
  of.count('repeated connections of kernels');
  const ghost = WireSocket.dial(port, identity, true);
  ghost.on('error', () => undefined);
  ghost.once('secureConnect', () => ghost.write(line));
  let got = '';
  ghost.on('data', (bytes: Buffer) => {
    got += bytes.toString('latin1');
    if (got.length < REFUSED.length) return;
    if (!got.startsWith(REFUSED))
      of.problem('the token of a kernel was accepted twice: a second connection with it got an answer');
    ghost.destroy();
  });
}
