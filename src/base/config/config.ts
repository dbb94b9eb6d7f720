/** The settings of this process. The environment overrides `troupe.config.json`, which overrides the defaults. */

import { PACKAGE_ROOT } from '../install/package-root.ts';
import { allowFile, ignoredFile } from './allowed-files.ts';
import { CONFIG_FILE, type FileReading, readConfigFile } from './file.ts';
import type { SettingsBase } from './kinds.ts';
import type { Setting } from './setting.ts';
import { isSettingName, SETTING_NAMES, SETTINGS, type SettingName } from './settings.ts';
import { nearest } from './spelling.ts';

type ValueOf<S> = S extends Setting<infer T> ? T : never;

/** The effective value of every setting. Secrets are wrapped, so that printing or logging a `Config` reveals none. */
export type Config = { readonly [Name in SettingName]: ValueOf<(typeof SETTINGS)[Name]> };

/** The source of a setting's value. */
export type Source = 'environment' | 'file' | 'default';

/** The settings and their sources. */
export interface LoadedConfig {
  readonly config: Config;
  /** The source of each value. */
  readonly sources: Readonly<Record<SettingName, Source>>;
}

/** All mistakes in the settings, one line each. Values are never quoted, because they may be secrets. */
export class ConfigError extends Error {
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Returns all settings. An empty value counts as unset. A settings file that `obeys` refuses counts as missing. Throws `ConfigError`
 * that names every unknown or wrong setting.
 */
export function loadConfig(
  env: Environment = process.env,
  {
    cwd = process.cwd(),
    packageRoot = PACKAGE_ROOT,
    obeys,
  }: Partial<SettingsBase> & Pick<FileReading, 'obeys'> = {},
): LoadedConfig {
  const base: SettingsBase = { cwd, packageRoot };
  const problems: string[] = [];
  const file = readConfigFile(cwd, (problem) => problems.push(problem), { obeys });
  problems.push(...unknownNames(env, file));

  const values: Record<string, unknown> = {};
  const sources: Partial<Record<SettingName, Source>> = {};
  // The data directory is read first, because other defaults are paths in it.
  let dataDir = '';
  for (const name of new Set<SettingName>(['dataDir', ...SETTING_NAMES])) {
    const setting: Setting<unknown> = SETTINGS[name];
    const given = pick(setting, name, env, file);
    sources[name] = given.source;
    values[name] =
      given.text === undefined ? defaultOf(setting, base, dataDir) : setting.kind.parse(given.text, base);
    if (given.text !== undefined && values[name] === undefined) {
      problems.push(`${given.calledBy} must be ${setting.kind.expectation}.`);
    }
    if (name === 'dataDir') dataDir = String(values[name]);
  }
  if (problems.length > 0 || !isComplete<Config>(values) || !isComplete<LoadedConfig['sources']>(sources))
    throw new ConfigError(problems);
  const config = Object.freeze(values.readOnly ? onlyReading(values) : values);
  return Object.freeze({ config, sources: Object.freeze(sources) });
}

/** Returns the settings of a server that only reads: everything is off that would start a kernel or write by itself. */
function onlyReading(config: Config): Config {
  return {
    ...config,
    warmUp: false,
    kernelNodes: 'none',
    packages: false,
    backupDir: undefined,
    auditForward: undefined,
    oidcIssuer: undefined, // signing in makes a session, and checks of people change their accounts
    keepRunsDays: 0,
    keepOutputsDays: 0,
    keepVersionsDays: 0,
    keepDeliveriesDays: 0,
    keepAuditDays: 0,
  };
}

/**
 * Lets commands obey the settings file of the working directory, because the user has started a server with it. Does nothing for a
 * user without a folder for settings, whom commands ask.
 */
export function allowSettingsFile(): void {
  try {
    if (ignoredFile(process.env, process.cwd()) !== undefined) allowFile(process.env, process.cwd());
  } catch {
    // The folder cannot be written.
  }
}

interface Given {
  readonly text: string | undefined;
  readonly source: Source;
  /** The name of the setting in error messages: the name that the user wrote. */
  readonly calledBy: string;
}

function pick(
  setting: Setting<unknown>,
  name: SettingName,
  env: Environment,
  file: ReadonlyMap<string, string>,
): Given {
  const fromEnv = env[setting.env];
  if (fromEnv !== undefined && fromEnv !== '') {
    return { text: fromEnv, source: 'environment', calledBy: setting.env };
  }
  const text = file.get(name);
  return { text, source: text === undefined ? 'default' : 'file', calledBy: `${name} in ${CONFIG_FILE}` };
}

function defaultOf(setting: Setting<unknown>, base: SettingsBase, dataDir: string): unknown {
  if (typeof setting.default === 'string') return setting.kind.parse(setting.default, base);
  return setting.default?.from(base, dataDir);
}

function unknownNames(env: Environment, file: ReadonlyMap<string, string>): string[] {
  const known = SETTING_NAMES.map((name) => SETTINGS[name].env);
  const unknownEnv = Object.keys(env).filter(
    (name) => name.startsWith('TROUPE_') && !known.some((k) => k === name),
  );
  const unknownMembers = [...file.keys()].filter((name) => !isSettingName(name));
  return [
    ...unknownEnv.map((name) => `${name} is not a setting.${suggestion(name, known)}`),
    ...unknownMembers.map((name) => {
      const meant = SETTING_NAMES.find((candidate) => SETTINGS[candidate].env === name);
      const named = `${name} in ${CONFIG_FILE}`;
      return `${named} is not a setting.${suggestion(meant ?? name, SETTING_NAMES)}`;
    }),
  ];
}

function suggestion(name: string, known: readonly string[]): string {
  const meant = nearest(name, known);
  return meant === undefined ? ' `troupe config` lists them all.' : ` Did you mean ${meant}?`;
}

/** `parse` returned a value for every setting, so the cast is safe: each kind's parser returns that kind's type. */
function isComplete<T extends Record<SettingName, unknown>>(values: object): values is T {
  return SETTING_NAMES.every((name) => Object.hasOwn(values, name));
}
