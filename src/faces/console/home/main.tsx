/** The pages for people: signing in, the list of the notebooks that they may open, and the page around one of them. */
import '../style/base.css';
import '../style/login.css';
import '../style/parts.css';
import '../style/outputs.css';
import './home.css';
import './jobs/jobs.css';
import './notebook-place.css';
import { render } from 'preact';
import { CommandLine } from './command-line.tsx';
import { NotebookPlaceView } from './notebook-place.tsx';
import { NotebooksPage } from './notebooks.tsx';
import { SignInForm } from './sign-in.tsx';

const root = document.getElementById('home');
if (root === null) throw new Error('The page has no place for its content.');
const [, notebookId] = /\/n\/([^/]+)\/$/.exec(location.pathname) ?? [];
if (location.pathname.endsWith('/sign-in'))
  render(new URLSearchParams(location.search).has('command-line') ? <CommandLine /> : <SignInForm />, root);
else
  render(notebookId === undefined ? <NotebooksPage /> : <NotebookPlaceView notebookId={notebookId} />, root);
