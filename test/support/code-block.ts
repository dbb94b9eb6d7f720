/** Returns code that edits a notebook: the lines, inside one code-mode context called `ctx`. */
export function block(...lines: readonly string[]): string {
  return blockWith('', ...lines);
}

/** Does the same as `block`, with arguments for the context, such as `skip_validation=True`. */
export function blockWith(options: string, ...lines: readonly string[]): string {
  const body = lines.map((line) => `    ${line}`).join('\n');
  return `import marimo._code_mode as cm\nasync with cm.get_context(${options}) as ctx:\n${body}\n`;
}

/** Returns a block that prints its result as the last line, even if it fails. */
export function blockWithResult(...lines: readonly string[]): string {
  const body = block(...lines)
    .split('\n')
    .slice(1)
    .map((line) => `    ${line}`)
    .join('\n');
  return `import json, marimo._code_mode as cm\ntry:\n${body}\nfinally:\n    print(json.dumps(ctx.result))\n`;
}
