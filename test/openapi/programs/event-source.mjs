// Follows a session with the npm package `eventsource` and prints each message. Ends when EventSource gives up.
import { EventSource } from 'eventsource';

const { STREAM_URL, TOKEN, WORKSPACE } = process.env;
const own = { authorization: `Bearer ${TOKEN}`, 'service-workspace-id': WORKSPACE };
const source = new EventSource(STREAM_URL, {
  fetch: (input, init) => fetch(input, { ...init, headers: { ...init.headers, ...own } }),
});
source.onmessage = ({ data }) => process.stdout.write(`${data}\n`);
source.onerror = () => {
  if (source.readyState === source.CLOSED) process.exit(0);
};
