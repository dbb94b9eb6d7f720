/** Runs a program to its end. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** Resolves when the program has ended with code 0. Otherwise rejects with the end of its output. */
export async function runCommand(
  program: string,
  args: readonly string[],
  { cwd, env }: { readonly cwd: string; readonly env: Readonly<Record<string, string>> },
): Promise<void> {
  const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (text: Buffer) => {
    said = `${said}${text.toString()}`.slice(-2000);
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`${program} ${args.join(' ')} has ended with ${String(code)}: ${said}`);
}
