import { runProgram } from '#src/faces/cli/program.ts';

/** The exit code and the output of a command line. */
export interface CliRun {
  readonly exitCode: number;
  readonly out: string;
  readonly err: string;
}

/** Runs one `troupe` command line in this process. */
export async function troupe(
  args: readonly string[],
  {
    env = {},
    cwd = '/',
    color = false,
    stdin = '',
  }: { env?: Record<string, string>; cwd?: string; color?: boolean; stdin?: string } = {},
): Promise<CliRun> {
  let out = '';
  let err = '';
  const terminal = {
    out: (text: string) => {
      out += text;
    },
    err: (text: string) => {
      err += text;
    },
    color,
  };
  const input = {
    read: async () => stdin,
    async *lines() {
      yield* stdin.split('\n');
    },
    isTerminal: true,
    onInterrupt: () => ({ [Symbol.dispose]: () => {} }),
  };
  const umask = process.umask();
  const exitCode = await runProgram(args, { terminal, input, env, cwd });
  process.umask(umask); // commands that write backups change the umask of their process
  return { exitCode, out, err };
}
