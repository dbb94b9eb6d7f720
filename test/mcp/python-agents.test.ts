// tier: whole, because it installs agent frameworks of Python
/** Agents of pydantic-ai and LangGraph, unmodified, work in a notebook over MCP. Scripted models decide each step by the results before. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import test from 'node:test';
import { PACKAGE_ROOT } from '#src/base/install/package-root.ts';
import { PYTHON, run } from '#test/contract/client-python/python.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';

const PROGRAMS = join(PACKAGE_ROOT, 'test/mcp/programs');
const server = await startServer(test);

/** The output of the programs. */
interface Seen {
  readonly answer: string;
  /** The text of the results of each step, as the model has read it. */
  readonly results: readonly string[];
  readonly pictures: number;
}

for (const [framework, program] of Object.entries({
  'pydantic-ai': 'pydantic_ai_agent.py',
  LangGraph: 'langgraph_agent.py',
})) {
  test(`an agent of ${framework} does ten steps that build on each other, through an error, a figure, a table and a limit`, async () => {
    const env = { BASE_URL: server.baseUrl, TOKEN: OWNER.token, WORKSPACE: OWNER.workspaceId };
    const { answer, results, pictures } = JSON.parse(
      await run(PYTHON, [program], { cwd: PROGRAMS, env }),
    ) as Seen;
    assert.equal(answer, 'The total is 42.');
    assert.equal(pictures, 1);
    const expected = [
      /nb_\w+/,
      /numbers/,
      /\b10\b/,
      /ValueError/,
      /4 \| 16\b/,
      /image\/png/,
      /\b30\b[\s\S]*\b16\b/,
      /timed_out/,
      /idle|success/,
      /\b42\b/,
    ];
    assert.equal(results.length, expected.length);
    for (const [step, pattern] of expected.entries()) assert.match(results[step]!, pattern);
  });
}
