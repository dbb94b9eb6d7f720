// `troupe node join`: runs the set-up, then the kernel node, in this process, so that signals reach the node.
import { reporting } from './console.mjs';
import { setUp } from './setup.mjs';

/** Ends the process. The arguments are those of `NodeArguments`. */
export async function join(given) {
  process.on('SIGUSR1', () => {});
  await reporting(setUp);
  const { program } = await import('../../dist/server/node.js');
  await program.exports.join(given);
}
