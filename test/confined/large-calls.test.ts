import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openKernel, startTestHost, type TestHost } from './kernel-fixture.ts';

let host: TestHost;
before(async () => {
  host = await startTestHost();
});
after(() => host[Symbol.asyncDispose]());

test('a statement that is too large fails its cell, and the kernel keeps its variables', async () => {
  const kernel = await openKernel(host, {
    kept: 'import troupe\nkept = 7',
    large: `
for sql, parameters in (
    ("insert into t values (?)", range(1_100_000)),
    ("insert into t values (?)", [b"x" * 55_000_000]),
    ("select '" + "x" * 70_000_000 + "'", ()),
):
    try:
        troupe.connect("sales").cursor().execute(sql, parameters)
    except Exception as error:
        print(type(error).__mro__[1].__name__, type(error).__name__, error)
print(kept)`,
  });
  const { stdout, statuses } = await kernel.run(['kept', 'large']);
  const lines = stdout.split('\n');
  for (const excess of [
    /1,100,0\d\d values, and the limit is 1,000,000$/,
    /73,333,\d{3} bytes of JSON, and the limit is 62,914,560$/,
    /70,000,\d{3} bytes of JSON, and the limit is 62,914,560$/,
  ]) {
    const line = lines.shift() ?? '';
    assert.match(line, /^DatabaseError DataError the statement and its parameters are too large: /);
    assert.match(line, excess);
  }
  assert.deepEqual(lines, ['7', '']);
  assert.equal(statuses.large, 'success');
  kernel.kernel.kill();
});

test('the kernel and the server count the values, members and levels of a call in the same way', async () => {
  // The call itself has one brace and four commas. A list has one bracket, and one comma less than
  // items.
  const kernel = await openKernel(host, {
    a: `
from troupe import channel
def ask(values):
    try:
        channel.ask("some", more=0, values=values)
    except ValueError as error:
        print(error)
nested = []
for _ in range(62):
    nested = [nested]
ask([",[", '"', "\\\\", *[0] * 999_992])
ask(nested)
ask([",[", '"', "\\\\", *[0] * 999_993])
ask([nested])
ask([{f"{{{n}:": {} for n in range(30_000)}] * 2)
ask([{f"{{{n}:": {} for n in range(30_001)}] * 2)`,
  });
  const run = kernel.run(['a']);
  for (const count of [999_995, 1, 2]) {
    const call = await kernel.next((message) => message.op === 'kernel-call');
    assert.ok(call.op === 'kernel-call' && Array.isArray(call.fields.values));
    assert.equal(call.fields.values.length, count);
    kernel.kernel.answerCall(call.id, ['{}']);
  }
  assert.deepEqual((await run).stdout.split('\n'), [
    '1,000,001 values, and the limit is 1,000,000',
    '65 levels, and the limit is 64',
    '30,001 members of one object, and the limit is 30,000',
    '',
  ]);
  kernel.kernel.kill();
});

test('pages get a widget at the limits of members and levels but no larger one, and the kernel keeps its variables', async () => {
  const kernel = await openKernel(host, {
    a: `
from marimo._messaging.notification import ModelLifecycleNotification, ModelOpen
from marimo._messaging.notification_utils import broadcast_notification
def show(model, value):
    message = ModelOpen(state={"value": value}, buffer_paths=[], buffers=[])
    broadcast_notification(ModelLifecycleNotification(model_id=model, message=message))
def nested(levels):
    return [nested(levels - 1)] if levels > 1 else []
show("wide", dict.fromkeys(map(str, range(30_000))))
show("too wide", dict.fromkeys(map(str, range(30_001))))
show("deep", nested(61))
show("too deep", nested(62))
kept = 7`,
    b: 'print(kept)',
  });
  const shown = () =>
    kernel.messages.flatMap((message) =>
      message.op === 'other' && message.name === 'model-lifecycle' ? [message.fields.model_id] : [],
    );
  kernel.kernel.follow(1);
  assert.equal((await kernel.run(['a'])).statuses.a, 'success');
  assert.deepEqual(shown(), ['wide', 'deep']);
  kernel.kernel.follow(2);
  assert.equal((await kernel.run(['b'])).stdout, '7\n');
  assert.deepEqual(shown(), ['wide', 'deep', 'wide', 'deep']);
  kernel.kernel.kill();
});
