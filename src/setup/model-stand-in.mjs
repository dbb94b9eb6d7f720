// `npm run model-stand-in`: a server that speaks the protocols of OpenAI and Anthropic and answers from a script, for
// trying agents without a key. The script has one prompt, the one below. To any other prompt the answer is that this
// is not a model.
import { reporting, say } from './console.mjs';
import { setUp } from './setup.mjs';

const PORT = Number(process.argv[2] ?? 8790);

const CELL = `import marimo._code_mode as cm
async with cm.get_context() as ctx:
    cell = ctx.create_cell("squares = [n * n for n in range(1, 6)]\\nsum(squares)", name="squares", hide_code=False)
    ctx.run_cell(cell)`;

await reporting(setUp);
const { LLMock } = await import('@copilotkit/aimock');
const server = await LLMock.create({ port: PORT, chunkSize: 6, latency: 15 });
server.on(
  { userMessage: 'squares', hasToolResult: false },
  { content: 'I will add a cell for that.', toolCalls: [{ name: 'run_python', arguments: { code: CELL } }] },
);
server.on(
  { userMessage: 'squares', hasToolResult: true },
  { content: 'There is a new cell `squares`: the sum of the first five squares is **55**.' },
);
server.on(
  { predicate: () => true },
  { content: 'I am the stand-in, not a model. Ask me for the *sum of the first five squares*.' },
);
say(`the stand-in for a model listens on ${server.url}; start Troupe with`);
say(
  `  TROUPE_OPENAI_COMPATIBLE_URL=${server.url}/v1 TROUPE_DEFAULT_MODEL=openai-compatible/stand-in npm start`,
);
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(0));
