import assert from 'node:assert/strict';
import test from 'node:test';
import { invite, startNode, startServerOfNodes } from '#test/support/kernel-node.ts';

test('a node whose unit names the invitation joins again at each restart, even if the invitation has become useless', async (t) => {
  const server = await startServerOfNodes(t);
  const settings = { TROUPE_NODE_INVITATION: await invite(server) };
  const first = startNode(t, { name: 'one', settings });
  await first.joined();
  await first.end('SIGTERM');

  const again = startNode(t, { name: 'one', settings, folder: first.folder });
  await again.joined();
  assert.deepEqual(
    again.said.filter((line) => line.includes('of no use')),
    [],
    'the invitation that made the membership is not tried again',
  );
  await again.end('SIGTERM');

  const other = `${settings.TROUPE_NODE_INVITATION.slice(0, -4)}AAAA`;
  const third = startNode(t, {
    name: 'one',
    settings: { TROUPE_NODE_INVITATION: other },
    folder: first.folder,
  });
  await third.joined();
  assert.ok(third.said.some((line) => line.startsWith('troupe: This invitation is of no use (')));
});

test('a node that gets a new invitation enrols anew', async (t) => {
  const server = await startServerOfNodes(t);
  const first = startNode(t, { name: 'one', invitation: await invite(server) });
  await first.joined();
  await first.end('SIGTERM');
  await server.client.nodes.remove('one');
  const again = startNode(t, { name: 'two', invitation: await invite(server), folder: first.folder });
  await again.joined();
  const { items } = await server.client.nodes.list();
  assert.deepEqual(
    items.map(({ name }) => name),
    ['two'],
  );
});
