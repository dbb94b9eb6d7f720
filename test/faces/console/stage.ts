import type { TestBrowser } from '#test/support/browser.ts';
import type { TestServer } from '#test/support/server-fixture.ts';
import type { ScriptedModel } from '#test/support/stand-ins/scripted-model.ts';

/** The server and browser that all tests of the console share, because starting them takes longer than most of the tests. */
export interface Stage {
  readonly server: TestServer;
  readonly browser: TestBrowser;
  /** The model that agents of the server ask. */
  readonly model: ScriptedModel;
}
