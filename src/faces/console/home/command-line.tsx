import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { ApiError } from '#src/contract/client/api-error.ts';
import type { OwnAccount } from '#src/contract/wire/identity.ts';
import type { AskingCommandLine } from '#src/contract/wire/operations/sign-in.ts';
import { pathOf } from '#src/contract/wire/paths.ts';
import { Loading } from '../parts/empty.tsx';
import { Problem } from '../parts/problem.tsx';
import { Mark } from '../shell/mark.tsx';
import { BASE_URL } from '../state/server.ts';
import { chosenWorkspace, clientOf } from './account.ts';

/** A command line that waits to be signed in, with the code that the person has typed. */
interface Asking extends AskingCommandLine {
  readonly code: string;
}

/**
 * The page on which a person confirms the sign-in of a command line. The person types the code, which is never part of a link.
 * Otherwise somebody could send a person a link that confirms the sender's own command line.
 */
export function CommandLine() {
  const account = useSignal<OwnAccount | undefined>(undefined);
  const asking = useSignal<Asking | undefined>(undefined);
  const outcome = useSignal<'confirmed' | 'refused' | undefined>(undefined);
  const error = useSignal<unknown>(undefined);
  const isBusy = useSignal(false);
  const act = async (action: () => Promise<void>) => {
    isBusy.value = true;
    error.value = undefined;
    try {
      await action();
    } catch (reason) {
      error.value =
        reason instanceof ApiError && reason.status === 404
          ? new Error(
              'No command line waits with this code: the code has expired, or was used. Run troupe login again.',
            )
          : reason;
    }
    isBusy.value = false;
  };
  useEffect(() => {
    void act(async () => {
      account.value = await clientOf().me({ limit: 100 });
    });
  }, []);
  if (account.value === undefined)
    return error.value === undefined ? <Loading /> : <Problem error={error.value} />;
  const { user, workspaces } = account.value;
  const last = chosenWorkspace();
  const look = (form: HTMLFormElement) =>
    act(async () => {
      const code = String(new FormData(form).get('code')).trim();
      const path = pathOf('getCommandLineSignIn', { code });
      asking.value = { code, ...(await clientOf().send<AskingCommandLine>({ method: 'GET', path })) };
    });
  const decide = (workspaceId: string, confirm: boolean) =>
    act(async () => {
      const path = pathOf('decideCommandLineSignIn', { code: asking.value?.code ?? '' });
      await clientOf(workspaceId).send({ method: 'POST', path, body: { confirm } });
      outcome.value = confirm ? 'confirmed' : 'refused';
    });
  return (
    <main class="login">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const form = event.currentTarget;
          if (asking.value === undefined) void look(form);
          else void decide(String(new FormData(form).get('workspace')), true);
        }}
      >
        <h1>
          <Mark /> Command line
        </h1>
        {outcome.value !== undefined ? (
          <>
            <p role="status">
              {outcome.value === 'confirmed'
                ? 'The command line is signed in. You can close this page.'
                : 'The command line was refused.'}
            </p>
            <a href={`${BASE_URL}/`}>Notebooks</a>
          </>
        ) : asking.value === undefined ? (
          <>
            <p>
              Type the code that <code>troupe login</code> shows in your terminal.
            </p>
            <label>
              Code
              <input
                name="code"
                required
                autoComplete="off"
                spellcheck={false}
                maxLength={20}
                pattern="[A-Za-z]{4}[ \-]?[A-Za-z]{4}"
                title="Eight letters, such as BCDF-GHJK"
              />
            </label>
            <button type="submit" class="primary" disabled={isBusy.value}>
              Continue
            </button>
          </>
        ) : (
          <>
            <p>
              A command line asks to act as <strong>{user.id}</strong>. It says that it runs on{' '}
              <strong>{asking.value.machine}</strong>, and comes from the address {asking.value.address}.
            </p>
            <p class="notice" role="alert">
              Confirm only if you have started <code>troupe login</code> yourself just now. Do not type a code
              that somebody sends you, and give nobody yours: they would get your notebooks and data.
            </p>
            <label>
              Workspace
              <select name="workspace">
                {workspaces.map(({ id, name }) => (
                  <option key={id} value={id} selected={id === last}>
                    {name}
                  </option>
                ))}
              </select>
            </label>
            <button type="submit" class="primary" disabled={isBusy.value}>
              Confirm
            </button>
            <button
              type="button"
              disabled={isBusy.value}
              onClick={() => void decide(workspaces[0]?.id ?? '', false)}
            >
              Refuse
            </button>
          </>
        )}
        {error.value !== undefined && <Problem error={error.value} />}
      </form>
    </main>
  );
}
