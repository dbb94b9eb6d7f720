import type { Kind, SettingsBase } from './kinds.ts';

/** A default that is computed from the base or the data directory. `shown` is the text in the documentation. */
interface Derived<T> {
  readonly shown: string;
  readonly from: (base: SettingsBase, dataDir: string) => T;
}

interface Description<T> {
  readonly env: string;
  readonly kind: Kind<T>;
  readonly unit?: string;
  readonly description: string;
}

/** One setting of the table. */
export interface Setting<T> extends Description<T> {
  /** The default as text, which is parsed like a given value. `undefined` means that the setting may stay unset. */
  readonly default: string | Derived<T> | undefined;
}

type WithDefault<T> = Description<T> & { readonly default: string | Derived<T> };

/** Returns a setting that always has a value. */
export const setting = <T>(entry: WithDefault<T>): Setting<T> => entry;
/** Returns a setting that may stay unset. */
export const optional = <T>(entry: Description<T>): Setting<T | undefined> => ({
  ...entry,
  default: undefined,
});
