/** A marimo file with these cells, each a function body; names by key, `_` and what follows it for none. */
export function marimoFile(cells: Readonly<Record<string, string>>): string {
  const functions = Object.entries(cells).map(([name, code]) => {
    const body = code
      .split('\n')
      .map((line) => `    ${line}`)
      .join('\n');
    return `@app.cell\ndef ${name.startsWith('_') ? '_' : name}():\n${body}\n    return\n`;
  });
  return `import marimo\n\napp = marimo.App()\n\n\n${functions.join('\n\n')}`;
}

/** One pixel. */
export const PNG_BASE64 =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** Code whose value is shown as an image of `image/png`. */
export const IMAGE_CODE = `import base64
class Picture:
    def _repr_png_(self):
        return base64.b64decode("${PNG_BASE64}")
Picture()`;
