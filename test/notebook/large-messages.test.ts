import assert from 'node:assert/strict';
import test from 'node:test';
import { codesIn } from '#src/notebook/open/large-messages.ts';

test('the code in a document change is found among all other members of the message', () => {
  const changes = [
    { type: 'create-cell', code: 'x = 1' },
    null,
    { code: 2 },
    'text',
    { type: 'set-code', code: 'y = 2' },
  ];
  assert.deepEqual(codesIn({ op: 'notebook-document-transaction', transaction: { changes } }), [
    'x = 1',
    'y = 2',
  ]);
  const others = [null, 1, [], {}, { transaction: null }];
  for (const message of [
    ...others,
    { op: 'notebook-document-transaction' },
    { op: 'notebook-document-transaction', transaction: { changes: {} } },
  ])
    assert.deepEqual(codesIn(message), []);
});
