import { configOf } from '#src/notebook/saved/document.ts';
import { callCode } from '#test/support/code-call.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { type Owner, startServer } from '#test/support/server-fixture.ts';
import type { Bench } from './situation.ts';

/** Starts our server, used through its public interface. The notebook that it reports must match the saved one. */
export async function startOurs(owner: Owner): Promise<Bench> {
  const server = await startServer(owner);
  return {
    async open(cells) {
      const notebook = await openNotebook(server, cells);
      if (Object.keys(cells).length > 0) await notebook.run([]);
      return {
        async call(code) {
          const answer = await callCode(server.client, notebook.id, code);
          return { ...answer, output: textOf(answer.output) };
        },
        async saved() {
          const { serialization } = await server.client.notebooks.get(notebook.id);
          return serialization.cells.map(({ cell_id, code, options }) => {
            const { name, column, disabled, hideCode, expandOutput } = configOf(options ?? {});
            return [
              cell_id,
              code,
              name,
              { column, disabled, hide_code: hideCode, expand_output: expandOutput },
            ];
          });
        },
        close: async () => {
          await notebook.close();
        },
      };
    },
  };
}

/** Returns the output as marimo's endpoint would: the text, if there are several representations. */
function textOf(output: { readonly data: unknown } | null): unknown {
  return output === null ? null : output.data;
}
