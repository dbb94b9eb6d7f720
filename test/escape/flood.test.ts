// tier: whole, because it attacks the confinement from many sides; as-this-user.test.ts stays in the gate
/**
 * A kernel that writes forged frames as fast as it can harms only its own session; others are
 * served in the meantime.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type OpenNotebook, openNotebook } from '#test/support/notebook-fixture.ts';
import { bounded } from '#test/support/processes.ts';
import { type AttackedServer, startAttacked } from './attacked-server.ts';

const FORGE = `
import json, os, socket, struct, time
def find():
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        try:
            found = socket.socket(fileno=os.dup(descriptor))
            if found.family == socket.AF_UNIX and found.getpeername(): return found
        except OSError: pass
def frame(message):
    body = json.dumps(message).encode()
    return struct.pack("<IB", len(body) + 1, 0) + body
def flood(messages, seconds):
    own, data, end = find(), b"".join(map(frame, messages)), time.monotonic() + seconds
    own.setblocking(True)
    while time.monotonic() < end: own.sendall(data)
def operation(**members):
    return dict(op="cell-op", cell_id="flood", output=None, console=None, status=None, stale_inputs=None,
                run_id=None, execution_id=None, timestamp=1, **{}) | members
`;
const SECONDS = 1;

let server: AttackedServer;
let bystander: OpenNotebook;
const usual: number[] = [];
const cleanUps: (() => Promise<void>)[] = [];
before(async () => {
  server = await startAttacked(
    { after: (cleanUp) => cleanUps.unshift(cleanUp) },
    { user: 'this user', settings: {} },
  );
  bystander = await openNotebook(server.neighbour, { a: '1 + 1' });
  for (let count = 0; count < 20; count++) usual.push(await ask());
});

/** The time that a run and a read of the other session take. */
async function ask(): Promise<number> {
  const startedAt = performance.now();
  const asked = async () => {
    assert.equal((await bystander.run(['a'])).status, 'completed');
    await bystander.record();
  };
  await bounded('another session is served', asked(), () => 'it waits');
  return performance.now() - startedAt;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

after(async () => {
  for (const cleanUp of cleanUps) await cleanUp();
});

for (const [what, messages] of [
  ['changes of state', '[operation(status=s) for s in ("queued", "running", "idle")] * 200'],
  [
    'output',
    '[operation(output=dict(channel="output", mimetype="text/plain", data="x" * 20000, timestamp=1))] * 5',
  ],
  [
    'text that was printed',
    '[operation(console=dict(channel="stdout", mimetype="text/plain", data="x" * 80, timestamp=1))] * 500',
  ],
  [
    'variables',
    '[dict(op="variables", variables=[dict(name=f"v{i}", declared_by=["flood"], used_by=[]) for i in range(5000)])]',
  ],
  [
    'new code of a cell',
    '[dict(op="notebook-document-transaction", transaction=dict(source="code-mode", changes=[dict(type="set-code", cellId="flood", code=f"x = {i}")])) for i in range(200)]',
  ],
  [
    'new cells',
    '[dict(op="notebook-document-transaction", transaction=dict(source="code-mode", changes=[dict(type="create-cell", cellId=f"n{i}", code="", name="n", config={}, before=None, after=None)])) for i in range(1500)]',
  ],
  ['large frames', '[dict(op="nothing", data=[0] * 900000)]'],
  ['nothing that is known', '[dict(op="nothing")] * 2000'],
] as const) {
  test(`a kernel that floods its server with ${what} does not delay other sessions`, async (t) => {
    const guilty = await openNotebook(server, { forge: FORGE, flood: `flood(${messages}, ${SECONDS})` });
    await guilty.run(['forge']);
    let over = false;
    const waits: number[] = [];
    const running = guilty.run(['flood']).finally(() => (over = true));
    do waits.push(await ask());
    while (!over);
    const run = await running;
    const [half, worst] = [median(waits), Math.max(...waits)];
    t.diagnostic(
      `${waits.length} runs of another session, half within ${half.toFixed(1)} ms (else ${median(usual).toFixed(1)} ms), all within ${worst.toFixed(1)} ms; ${run.status}`,
    );
    await guilty.close();
  });
}
