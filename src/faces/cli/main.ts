import { processEnvironment } from '#src/base/config/service-access.ts';
import { processScreen } from './full-screen.ts';
import { processInput } from './input.ts';
import { runProgram } from './program.ts';
import { processDevice } from './terminal.ts';

/** Settles when the command has been carried out. The bundle is a script and cannot await it. */
export const ended = main();

async function main(): Promise<void> {
  const env = processEnvironment();
  const input = processInput();
  process.exitCode = await runProgram(process.argv.slice(2), {
    terminal: processDevice(input.hangUp),
    input,
    screen: processScreen(env.TERM),
    env,
    cwd: process.cwd(),
  });
}
