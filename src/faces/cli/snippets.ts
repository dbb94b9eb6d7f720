/** The programs that `troupe init` prints. */

/** The server that a program uses. */
export interface SnippetServer {
  readonly baseUrl: string;
  readonly workspaceId: string;
}

/** A program, and the next step for the person who reads it. */
export interface Snippet {
  readonly text: string;
  readonly next: string;
}

const TOKEN = 'troupe tokens create makes a token';

/** The variables without the token, as a shell takes them. */
const variables = ({ baseUrl, workspaceId }: SnippetServer) =>
  `export SERVICE_BASE_URL=${quoted(baseUrl)} SERVICE_WORKSPACE_ID=${quoted(workspaceId)}`;

/** Returns the text quoted as one shell word. */
function quoted(text: string): string {
  return /^[\w./:@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

export const SNIPPETS = {
  python: (server) => ({
    text: `# pip install troupe-client
# ${variables(server)}
# export SERVICE_ACCESS_TOKEN=…
from troupe_client import Troupe

with Troupe() as troupe:
    notebook = troupe.notebooks.create(
        title="First", cells={"numbers": "n = [1, 2, 3]", "answer": "print(sum(n))\\nsum(n) * 10"}
    )
    with troupe.open(notebook) as session:
        run = session.start("answer")
        for event in run:
            if event.type == "console-output":
                print(event.data.text, end="")
        print(run.result().cells["answer"].text)
`,
    next: `Set the variables of its first lines (${TOKEN}), and run it with python.`,
  }),
  typescript: (server) => ({
    text: `// npm install troupe-client
// ${variables(server)}
// export SERVICE_ACCESS_TOKEN=…
import { Troupe } from 'troupe-client';

const troupe = new Troupe();
const notebook = await troupe.notebooks.create({
  title: 'First',
  serialization: {
    cells: [
      { cell_id: 'numbers', code: 'n = [1, 2, 3]' },
      { cell_id: 'answer', code: 'print(sum(n))\\nsum(n) * 10' },
    ],
  },
});
const session = await troupe.open(notebook);
try {
  const run = session.run('answer');
  for await (const event of run) {
    if (event.type === 'console-output') console.log(event.data.text);
  }
  console.log((await run.result()).cells.answer?.text);
} finally {
  await session.close();
}
`,
    next: `Set the variables of its first lines (${TOKEN}), and run it as an ECMAScript module.`,
  }),
  mcp: ({ baseUrl, workspaceId }) => ({
    text: `${JSON.stringify(
      {
        mcpServers: {
          troupe: {
            command: 'troupe',
            args: ['mcp'],
            env: {
              SERVICE_BASE_URL: baseUrl,
              SERVICE_WORKSPACE_ID: workspaceId,
              SERVICE_ACCESS_TOKEN: '<token>',
            },
          },
        },
      },
      null,
      2,
    )}\n`,
    next: `Put it into the settings of your agent or editor, with a token in place of <token> (${TOKEN}).`,
  }),
  curl: (server) => ({
    text: `# export SERVICE_ACCESS_TOKEN=…
${variables(server)}
call() {
  curl --fail-with-body --silent --show-error --header "Authorization: Bearer \${SERVICE_ACCESS_TOKEN:?}" \\
    --header "Service-Workspace-Id: $SERVICE_WORKSPACE_ID" --header 'Content-Type: application/json' "$@"
}
text() { sed -n "s/.*\\"$1\\":\\"\\([^\\"]*\\)\\".*/\\1/p"; }

notebook=$(call "$SERVICE_BASE_URL/api/v3/notebooks" --data '{"title": "First", "serialization": {"cells": [
  {"cell_id": "answer", "code": "print(sum([1, 2, 3]))\\n6 * 10"}]}}' | text id)
environment=$(call "$SERVICE_BASE_URL/api/v3/execution-environments" --data '{}' | text environmentId)
call "$SERVICE_BASE_URL/api/v3/notebook-sessions" \\
  --data "{\\"notebookId\\": \\"$notebook\\", \\"environmentId\\": \\"$environment\\"}"
until call "$SERVICE_BASE_URL/api/v3/notebook-sessions/$notebook" | grep -q '"status":"ready"'; do sleep 0.2; done
call "$SERVICE_BASE_URL/api/v3/notebook-sessions/$notebook/executions?wait=60" --data '{"type": "all"}'
call --request DELETE "$SERVICE_BASE_URL/api/v3/notebook-sessions/$notebook"
`,
    next: `Set SERVICE_ACCESS_TOKEN (${TOKEN}), and run it with bash.`,
  }),
} satisfies Readonly<Record<string, (server: SnippetServer) => Snippet>>;
