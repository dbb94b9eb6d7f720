import { useSignal } from '@preact/signals';
import type { ComponentType } from 'preact';
import { useEffect } from 'preact/hooks';
import { Empty, Loading } from '../parts/empty.tsx';
import { comebacks } from '../state/server.ts';

/** Returns a component whose code the browser loads when the component is first shown. */
export function lazy<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  return (props) => {
    const state = useSignal<{ readonly Component?: ComponentType<Props>; readonly hasFailed?: boolean }>({});
    useEffect(() => {
      if (state.peek().Component !== undefined) return;
      load().then(
        (Component) => {
          state.value = { Component };
        },
        () => {
          state.value = { hasFailed: true };
        },
      );
    }, [comebacks.value]);
    const { Component, hasFailed = false } = state.value;
    if (Component !== undefined) return <Component {...props} />;
    if (!hasFailed) return <Loading />;
    return (
      <Empty title="This part could not be loaded">
        The server is away, or was upgraded since this page was loaded. Load the page again.
      </Empty>
    );
  };
}
