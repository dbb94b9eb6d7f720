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
import { Loading } from './parts/empty.tsx';
import { Login } from './shell/login.tsx';
import { Shell } from './shell/shell.tsx';
import { isResuming, resume, user } from './state/sign-in.ts';

function App() {
  if (user.value !== undefined) return <Shell />;
  return isResuming.value ? <Loading /> : <Login />;
}

const root = document.getElementById('console');
if (root === null) throw new Error('The page has no place for the console.');
void resume();
render(<App />, root);
