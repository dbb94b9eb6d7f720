import { Login } from './shell/login.tsx';
import { Shell } from './shell/shell.tsx';
import { session } from './state/session.ts';

export function App() {
  return session.value === undefined ? <Login /> : <Shell />;
}
