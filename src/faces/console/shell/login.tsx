import { useSignal } from '@preact/signals';
import { Problem } from '../parts/problem.tsx';
import { TokenField } from '../parts/token-field.tsx';
import { BASE_URL } from '../state/server.ts';
import { endedBecause, signIn } from '../state/sign-in.ts';
import { Mark } from './mark.tsx';

/** Returns the present path of the console, to come back to it. */
function pathHere(): string {
  const { pathname, search, hash } = location;
  return pathname + search + hash;
}

/** The page on which an access token is pasted. */
export function Login() {
  const error = useSignal<unknown>(undefined);
  const isBusy = useSignal(false);
  const submit = async (event: SubmitEvent & { readonly currentTarget: HTMLFormElement }) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    isBusy.value = true;
    error.value = undefined;
    try {
      await signIn(String(form.get('token')).trim(), { remember: form.get('remember') !== null });
    } catch (reason) {
      error.value = reason;
    }
    isBusy.value = false;
  };
  return (
    <main class="login">
      <form onSubmit={submit}>
        <h1>
          <Mark /> Troupe
        </h1>
        <p>See what this server does: sessions, kernels, runs and agents, live.</p>
        {endedBecause.value !== undefined && error.value === undefined && (
          <p class="notice" role="status">
            {endedBecause.value}
          </p>
        )}
        <TokenField label="Access token" takesFocus />
        <label class="check">
          <input name="remember" type="checkbox" /> Stay signed in until this tab is closed
        </label>
        <button type="submit" class="primary" disabled={isBusy.value}>
          {isBusy.value ? 'Signing in …' : 'Sign in'}
        </button>
        {error.value !== undefined && <Problem error={error.value} />}
        <p>
          Or{' '}
          <a href={`${BASE_URL}/sign-in?to=${encodeURIComponent(pathHere())}`}>sign in with this browser</a>,
          as for the list of notebooks.
        </p>
        <p class="faint">
          The first start of the server printed a token and stored it in <code>bootstrap.json</code> in its
          data directory. On the machine of the server: <code>troupe token create</code>. The console keeps
          the token in the memory of this page.
        </p>
      </form>
    </main>
  );
}
