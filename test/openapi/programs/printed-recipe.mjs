// Runs the recipe of docs/api.md as it is printed, with the `EventSource` of the npm package, and prints each event.
import { EventSource } from 'eventsource';

const { RECIPE, BASE, TOKEN, WORKSPACE, SESSION } = process.env;
const show = (event) => process.stdout.write(`${JSON.stringify(event)}\n`);
const run = new Function('EventSource', 'base', 'token', 'workspace', 'show', `${RECIPE}\nreturn follow;`);
run(EventSource, BASE, TOKEN, WORKSPACE, show)(SESSION);
