/**
 * Returns a marimo file with these cells. Keys are names of cells, and values are code. A cell
 * whose key begins with `_` has no name.
 */
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

/** A PNG of one pixel. */
export const PNG_BASE64 =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** Python code whose value is shown as a PNG image. */
export const IMAGE_CODE = `import base64
class Picture:
    def _repr_png_(self):
        return base64.b64decode("${PNG_BASE64}")
Picture()`;
