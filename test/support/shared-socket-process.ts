/**
 * A process that answers with its number on the socket that it has inherited as descriptor 4. It says `ready`. On the message
 * `stop` it stops listening and reports the largest number of connections that it has accepted in one turn of its event loop.
 */
import { listenOn, loadUws } from '#src/http/uws.ts';

const INHERITED = 4;

const uws = await loadUws();
const app = uws.App();
app.get('/', (res) => {
  res.end(String(process.pid));
});
let [inTurn, most] = [0, 0];
const count = (change: number): void => {
  if (change < 0) return;
  if (inTurn++ === 0)
    setImmediate(() => {
      inTurn = 0;
    });
  most = Math.max(most, inTurn);
};
app.filter((_res, change) => count(Number(change)));
const listening = await listenOn(uws, app, { host: '127.0.0.1', port: 0, descriptor: INHERITED });
process.on('message', () => {
  listening.stop();
  process.send?.({ most });
});
process.on('disconnect', () => process.exit(0));
process.send?.({ port: listening.port });
