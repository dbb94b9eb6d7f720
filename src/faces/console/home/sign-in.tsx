import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { ApiError } from '#src/contract/client/api-error.ts';
import type { SignInOptions } from '#src/contract/wire/operations/sign-in.ts';
import { Problem } from '../parts/problem.tsx';
import { TokenField } from '../parts/token-field.tsx';
import { Mark } from '../shell/mark.tsx';
import { BASE_URL } from '../state/server.ts';
import { destination, pathOfDestination, signInOptions, signInWith } from './account.ts';

/** The page on which a person signs in: with the company's identity provider where there is one, or with an access token. */
export function SignInForm() {
  const error = useSignal<unknown>(undefined);
  const isBusy = useSignal(false);
  const options = useSignal<SignInOptions | undefined>(undefined);
  useEffect(() => {
    signInOptions().then(
      (value) => {
        options.value = value;
      },
      (reason: unknown) => {
        error.value = reason;
      },
    );
  }, []);
  const submit = async (event: SubmitEvent & { readonly currentTarget: HTMLFormElement }) => {
    event.preventDefault();
    const token = String(new FormData(event.currentTarget).get('token')).trim();
    isBusy.value = true;
    error.value = undefined;
    try {
      await signInWith(token);
      location.replace(destination());
    } catch (reason) {
      error.value = reason;
      isBusy.value = false;
    }
  };
  const refusal = new URLSearchParams(location.search).get('refused');
  const provider = options.value?.provider ?? null;
  return (
    <main class="login">
      <form onSubmit={submit}>
        <h1>
          <Mark /> Troupe
        </h1>
        {refusal !== null && error.value === undefined && (
          <p class="notice" role="alert">
            {REFUSALS[refusal] ?? REFUSALS.failed}
          </p>
        )}
        {provider !== null && (
          <a
            class="primary button"
            href={`${BASE_URL}/sign-in/provider?to=${encodeURIComponent(pathOfDestination())}`}
          >
            Sign in with {provider}
          </a>
        )}
        <TokenField
          label={provider === null ? 'Access token' : 'Or with an access token'}
          takesFocus={options.value !== undefined && provider === null}
        />
        <button type="submit" class={provider === null ? 'primary' : ''} disabled={isBusy.value}>
          {isBusy.value ? 'Signing in …' : 'Sign in'}
        </button>
        {isUnknown(error.value) ? (
          <p class="notice" role="alert">
            Nobody has this access token. It may be misspelt, revoked or expired.
          </p>
        ) : (
          error.value !== undefined && <Problem error={error.value} />
        )}
        <p class="faint">
          The first start of the server printed a token and keeps it in <code>bootstrap.json</code> in its
          data directory. Others get theirs from an owner of their workspace.{' '}
          <a href={`${BASE_URL}/about`}>About this server</a>
        </p>
      </form>
    </main>
  );
}

/** Returns whether the server does not know the token. The server's own sentence names a header, so it is for programs. */
function isUnknown(error: unknown): boolean {
  return error instanceof ApiError && error.code === 'unauthenticated';
}

/** Sentences about answers of the identity provider after which nobody was signed in. */
const REFUSALS: Readonly<Record<string, string>> = {
  failed: 'Signing in did not succeed. Try again.',
  cancelled: 'Signing in was cancelled.',
  expired: 'Signing in took too long, or began in another browser. Try again.',
  'no-workspace': 'You are a member of no workspace here. Ask an owner of a workspace to add you.',
  unknown: 'Your account cannot be used here. Ask an operator of this server.',
};
