import { startTestHost } from '#test/confined/kernel-fixture.ts';
import { enter, World } from '../world/world.ts';
import { type Dialogue, hold } from './dialogue.ts';
import { SimulatedZygote } from './simulated-zygote.ts';

/** Resolves with the answers of a scripted kernel. Throws when anything went wrong in its world. */
export async function scriptedDialogue(): Promise<Dialogue> {
  const world = new World(1);
  enter(world);
  let answers: Dialogue = {};
  await world.run(async () => {
    const host = await startTestHost({ startZygote: SimulatedZygote.starter(() => undefined) });
    answers = await hold(host);
    await host[Symbol.asyncDispose]();
  });
  if (world.problems.length > 0) throw new Error(world.problems.join('\n'));
  return answers;
}
