import { processEnvironment } from '#src/config/service.ts';
import { runProgram } from './program.ts';
import { processTerminal } from './terminal.ts';

process.exitCode = await runProgram(process.argv.slice(2), {
  terminal: processTerminal(),
  env: processEnvironment(),
  cwd: process.cwd(),
});
