import { processEnvironment } from '#src/config/service-access.ts';
import { processInput } from './input.ts';
import { runProgram } from './program.ts';
import { processDevice } from './terminal.ts';

process.exitCode = await runProgram(process.argv.slice(2), {
  terminal: processDevice(),
  input: processInput(),
  env: processEnvironment(),
  cwd: process.cwd(),
});
