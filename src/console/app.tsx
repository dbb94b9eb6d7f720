import { Loading } from './parts/empty.tsx';
import { Login } from './shell/login.tsx';
import { Shell } from './shell/shell.tsx';
import { isResuming, session } from './state/session.ts';

export function App() {
  if (session.value !== undefined) return <Shell />;
  return isResuming.value ? <Loading /> : <Login />;
}
