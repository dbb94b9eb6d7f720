/** The console: a page that shows the state of the server to the holder of an access token. */
import './style/base.css';
import './style/shell.css';
import './style/login.css';
import './style/parts.css';
import './style/tables.css';
import './style/chart.css';
import './style/outputs.css';
import './style/views.css';
import { render } from 'preact';
import { App } from './app.tsx';
import { resume } from './state/session.ts';

const root = document.getElementById('console');
if (root === null) throw new Error('The page has no place for the console.');
void resume();
render(<App />, root);
