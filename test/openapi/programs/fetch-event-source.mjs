// Follows a session with `@microsoft/fetch-event-source` and prints each message. Ends when the session is closed.
import { fetchEventSource } from '@microsoft/fetch-event-source';

// The package is made for browsers.
globalThis.window = globalThis;
globalThis.document = { addEventListener() {}, removeEventListener() {}, hidden: false };

class Closed extends Error {}
class Cut extends Error {}

const { STREAM_URL, TOKEN, WORKSPACE } = process.env;
await fetchEventSource(STREAM_URL, {
  headers: { authorization: `Bearer ${TOKEN}`, 'service-workspace-id': WORKSPACE },
  openWhenHidden: true,
  async onopen(response) {
    if (response.status === 204) throw new Closed();
  },
  onmessage({ data }) {
    JSON.parse(data); // throws for an empty event
    process.stdout.write(`${data}\n`);
  },
  onclose() {
    throw new Cut();
  },
  onerror(error) {
    if (error instanceof Closed || error instanceof SyntaxError) throw error;
  },
}).catch((error) => {
  if (!(error instanceof Closed)) throw error;
});
