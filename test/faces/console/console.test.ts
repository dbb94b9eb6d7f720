// tier: whole, because it opens many tabs and shows ten thousand actors for minutes
import { after, test } from 'node:test';
import { openBrowser, withoutBrowser } from '#test/support/browser.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';
import { actors } from './actors.ts';
import { busyActor } from './busy-actor.ts';
import { files } from './files.ts';
import { hostileOutput } from './hostile-output.ts';
import { live } from './live.ts';
import { login } from './login.ts';
import { manyActors } from './many-actors.ts';
import { narrow } from './narrow.ts';
import { views } from './views.ts';

const owner = { after };

const model = await startScriptedModel(owner);
const server = await startServer(owner, {
  TROUPE_OPENAI_COMPATIBLE_URL: model.url,
  TROUPE_DEFAULT_MODEL: 'openai-compatible/scripted',
});

test('the files of the console', async (t) => files(t, server));

test('the console in a browser', { skip: withoutBrowser }, async (t) => {
  const stage = { server, model, browser: await openBrowser(owner) };
  await t.test('signing in at the console', (part) => login(part, stage));
  await t.test('the views of the console', (part) => views(part, stage));
  await t.test('the actors in the console', (part) => actors(part, stage));
  await t.test('subscriptions and requests of the console', (part) => live(part, stage));
  await t.test('hostile output in the console', (part) => hostileOutput(part, stage));
  await t.test('the console on a phone', (part) => narrow(part, stage));
  await t.test('the console with an actor that moves all the time', (part) => busyActor(part, stage));
  await t.test('the console with 10,000 actors', (part) => manyActors(part, stage));
});
