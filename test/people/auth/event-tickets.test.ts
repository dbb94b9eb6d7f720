import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EventTickets, slotOfTicket } from '#src/people/auth/event-tickets.ts';
import { slotOf } from '#src/runtime/homes/slots.ts';
import { BOOTSTRAP_TOKEN, openIdentity, refusalOf } from './identity-fixture.ts';

const PURPOSE = { action: 'session.read', sessionId: 'nb_1' } as const;

test('a ticket is for one stream and one use, and a wrong use consumes it', async (t) => {
  const { authenticator } = await openIdentity(t);
  const caller = authenticator.authenticate(`Bearer ${BOOTSTRAP_TOKEN}`, 'home');
  const tickets = new EventTickets(authenticator);
  const { ticket } = tickets.issue(caller, PURPOSE);
  assert.match(ticket, /^tkt_[0-9a-f]{2}_[\w-]{43}$/);
  assert.equal(tickets.redeem(ticket, PURPOSE), caller);
  for (const [given, purpose] of [
    [ticket, PURPOSE],
    [tickets.issue(caller, PURPOSE).ticket, { ...PURPOSE, sessionId: 'nb_2' }],
    [tickets.issue(caller, PURPOSE).ticket, { ...PURPOSE, action: 'agent.read' }],
    ['tkt_', PURPOSE],
  ] as const) {
    assert.equal(
      refusalOf(() => tickets.redeem(given, purpose)),
      'unauthenticated',
    );
    assert.equal(
      refusalOf(() => tickets.redeem(given, PURPOSE)),
      'unauthenticated',
    );
  }
});

test('a ticket names the slot of its session', async (t) => {
  const { authenticator } = await openIdentity(t);
  const caller = authenticator.authenticate(`Bearer ${BOOTSTRAP_TOKEN}`, 'home');
  const tickets = new EventTickets(authenticator);
  for (const sessionId of ['nb_1', 'nb_2', 'cnv_1']) {
    const { ticket } = tickets.issue(caller, { ...PURPOSE, sessionId });
    assert.equal(slotOfTicket(ticket), slotOf(caller.workspaceId, sessionId));
    assert.equal(slotOfTicket(`x${ticket}`), undefined);
  }
  for (const text of ['', 'tkt_', 'tkt_zz_abc', 'tkt_0_abc'])
    assert.equal(slotOfTicket(text), undefined, text);
});

test('a ticket lives for a minute', async (t) => {
  const { authenticator } = await openIdentity(t);
  const caller = authenticator.authenticate(`Bearer ${BOOTSTRAP_TOKEN}`, 'home');
  const tickets = new EventTickets(authenticator);
  const [one, other] = [tickets.issue(caller, PURPOSE, 0), tickets.issue(caller, PURPOSE, 0)];
  assert.equal(one.expiresAtMs, 60_000);
  assert.equal(tickets.redeem(one.ticket, PURPOSE, 59_999), caller);
  assert.equal(
    refusalOf(() => tickets.redeem(other.ticket, PURPOSE, 60_000)),
    'unauthenticated',
  );
});

test('an access token has at most a hundred unused tickets, and expired tickets make room', async (t) => {
  const { authenticator } = await openIdentity(t);
  const caller = authenticator.authenticate(`Bearer ${BOOTSTRAP_TOKEN}`, 'home');
  const tickets = new EventTickets(authenticator);
  const issued = Array.from({ length: 100 }, () => tickets.issue(caller, PURPOSE, 0));
  const refusal = () => refusalOf(() => void tickets.issue(caller, PURPOSE, 1));
  assert.equal(refusal(), 'quota_exceeded');
  tickets.redeem(issued[7]!.ticket, PURPOSE, 1);
  tickets.issue(caller, PURPOSE, 1);
  assert.equal(refusal(), 'quota_exceeded');
  assert.ok(tickets.issue(caller, PURPOSE, 60_000));
});
