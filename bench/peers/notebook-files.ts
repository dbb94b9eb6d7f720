/** Notebook files for the comparisons. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Returns a notebook with these cells as a file of marimo. */
export function notebookFile(codes: readonly string[]): string {
  const cells = codes.map(
    (code) => `@app.cell\ndef _():\n    ${code.replaceAll('\n', '\n    ')}\n    return\n`,
  );
  return `import marimo\n\napp = marimo.App()\n\n\n${cells.join('\n\n')}\n\nif __name__ == "__main__":\n    app.run()\n`;
}

/** Returns a notebook with these cells as a file of Jupyter. */
export function jupyterFile(codes: readonly string[]): string {
  return JSON.stringify({
    cells: codes.map((source, index) => ({
      ...{ cell_type: 'code', id: `c${index}`, source, metadata: {}, outputs: [], execution_count: null },
    })),
    metadata: { kernelspec: { name: 'python3', display_name: 'Python 3', language: 'python' } },
    nbformat: 4,
    nbformat_minor: 5,
  });
}

/** Writes so many files of Jupyter, with 5 to 50 cells of text and code, into a folder. Returns their names. */
export function jupyterFiles(folder: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, number) => {
    const name = `converted${number}.ipynb`;
    const codes = Array.from({ length: 5 * (number + 1) }, (_, i) =>
      i === 0 ? 'import math' : `y${i} = [math.sqrt(n * ${i}) for n in range(10)]\nprint(sum(y${i}))`,
    );
    writeFileSync(join(folder, name), jupyterFile(codes));
    return name;
  });
}
