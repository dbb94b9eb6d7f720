import { useSignal } from '@preact/signals';
import { Problem } from '../parts/problem.tsx';
import { endedBecause, signIn } from '../state/session.ts';
import { Mark } from './mark.tsx';

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
        <label>
          Access token
          <input
            name="token"
            type="password"
            required
            pattern="\s*[!-~]+\s*"
            title="Letters, digits and signs of ASCII. If it looks like that, it holds something invisible: copy it again."
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            // The page has nothing else to do.
            ref={(input) => input?.focus({ preventScroll: true })}
          />
        </label>
        <label class="check">
          <input name="remember" type="checkbox" /> Stay signed in until this tab is closed
        </label>
        <button type="submit" class="primary" disabled={isBusy.value}>
          {isBusy.value ? 'Signing in …' : 'Sign in'}
        </button>
        {error.value !== undefined && <Problem error={error.value} />}
        <p class="faint">
          The first start of the server printed a token and keeps it in <code>bootstrap.json</code> in its
          data directory. On the machine of the server: <code>troupe token create</code>. The console keeps
          the token in the memory of this page.
        </p>
      </form>
    </main>
  );
}
