import { useSignal, useSignalEffect } from '@preact/signals';
import type { ComponentType } from 'preact';
import { useEffect } from 'preact/hooks';
import { Empty, Loading } from '../parts/empty.tsx';
import { go, here, linkTo, place } from '../state/route.ts';
import { comebacks, isUnreachable } from '../state/server.ts';
import { user } from '../state/sign-in.ts';
import type { ViewProps } from '../view-props.ts';
import { KeyHelp, useKeys } from './keys.tsx';
import { Navigation } from './navigation.tsx';
import { TopBar } from './top-bar.tsx';
import { VIEWS } from './views.ts';

/** Everything around a view: navigation, workspace, search, keys. */
export function Shell() {
  useKeys();
  useSignalEffect(() => {
    const { workspaceId, view } = place.value;
    const workspaces = user.value?.workspaces ?? [];
    const [first] = workspaces;
    if (first === undefined || (workspaceId !== '' && view !== '')) return;
    location.replace(linkTo(workspaceId === '' ? first.id : workspaceId, ['overview']));
  });
  return (
    <div class="shell">
      <button type="button" class="skip" onClick={skipToContent}>
        Skip to the content
      </button>
      <TopBar />
      <Navigation />
      <main id="content">
        {isUnreachable.value && (
          <p class="notice unreachable" role="status">
            The server does not answer. The shown data may be old; the console continues by itself when the
            server is back.
          </p>
        )}
        <CurrentView />
      </main>
      <KeyHelp />
    </div>
  );
}

/** A button calls this function. A link could not, because the part of the address after `#` is the route. */
function skipToContent(): void {
  document.querySelector<HTMLElement>('main h1')?.focus();
}

function CurrentView() {
  const { workspaceId, view: name, rest } = place.value;
  const loaded = useSignal<Readonly<Record<string, ComponentType<ViewProps>>>>({});
  const hasFailed = useSignal(false);
  const view = VIEWS.find((one) => one.name === name);
  useEffect(() => {
    if (view === undefined || loaded.peek()[view.name] !== undefined) return;
    hasFailed.value = false;
    view.load().then(
      (component) => {
        loaded.value = { ...loaded.peek(), [view.name]: component };
      },
      () => {
        hasFailed.value = true;
      },
    );
  }, [view, comebacks.value]);
  const workspaces = user.value?.workspaces ?? [];
  if (workspaces.length === 0)
    return <Empty title="This token opens no workspace">Ask an owner of a workspace to add you.</Empty>;
  if (workspaceId !== '' && !workspaces.some(({ id }) => id === workspaceId))
    return (
      <Empty title="This token does not open that workspace">
        <button type="button" onClick={() => go(linkTo(workspaces[0]!.id, ['overview']))}>
          Go to {workspaces[0]!.name}
        </button>
      </Empty>
    );
  if (view === undefined)
    return name === '' ? null : (
      <Empty title="There is no such view">
        <a href={here(['overview'])}>Go to the overview</a>
      </Empty>
    );
  const Component = loaded.value[view.name];
  if (Component === undefined && hasFailed.value)
    return (
      <Empty title="This view could not be loaded">
        The server is away, or was upgraded since this page was loaded. Load the page again; you may have to
        sign in again.{' '}
        <button type="button" onClick={() => location.reload()}>
          Load the page again
        </button>
      </Empty>
    );
  return Component === undefined ? (
    <Loading />
  ) : (
    <Component key={`${workspaceId}/${name}/${rest.join('/')}`} rest={rest} />
  );
}
