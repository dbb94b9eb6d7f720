import { delimiter, dirname, join } from 'node:path';

/**
 * The variables of the server's environment that a child may have. Never add a name that could hold
 * a secret.
 */
const PASSED_ON = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'LC_CTYPE', 'TZ', 'TMPDIR', 'LD_LIBRARY_PATH'];
/**
 * The variables that a kernel may have: the same variables without HOME and the folder of temporary files. A
 * kernel has its own HOME, and must not know the server's folder of temporary files.
 */
const PASSED_TO_KERNELS = ['LANG', 'LC_ALL', 'LC_CTYPE', 'TZ', 'LD_LIBRARY_PATH'];

type Environment = Readonly<Record<string, string | undefined>>;

/** The libraries that the kernel host loads before its first fork, so that a notebook imports them in milliseconds. */
const PRELOADED = ['numpy', 'pandas', 'pyarrow', 'matplotlib.pyplot', 'altair', 'duckdb', 'apsw', 'sqlglot'];

/**
 * Returns the environment of the kernel host. It lacks PYTHONDONTWRITEBYTECODE, which would double the time of every
 * start. `confinement` is the confinement wanted for all kernels.
 */
export function hostEnvironment(
  server: Environment,
  preload: boolean,
  confinement: Readonly<Record<string, unknown>> = {},
): Record<string, string> {
  return {
    ...pick(server, PASSED_ON),
    LANG: server.LANG ?? 'C.UTF-8',
    TROUPE_PRELOAD: preload ? PRELOADED.join(' ') : '',
    TROUPE_CONFINEMENT: JSON.stringify(confinement),
  };
}

/**
 * Returns the environment of one kernel: HOME is the working directory of the kernel, and `python` is its
 * interpreter. `packages` is a folder of packages that programs started by the kernel find as well.
 */
export function kernelEnvironment(
  server: Environment,
  python: string,
  cwd: string,
  own: Readonly<Record<string, string>>,
  packages?: string,
): Record<string, string> {
  const bins = packages === undefined ? [] : [join(packages, 'bin')];
  const path = [...bins, dirname(python), server.PATH ?? '/usr/local/bin:/usr/bin:/bin'].join(delimiter);
  return {
    ...pick(server, PASSED_TO_KERNELS),
    LANG: server.LANG ?? 'C.UTF-8',
    PATH: path,
    HOME: cwd,
    ...own,
    ...(packages === undefined ? {} : { PYTHONPATH: joined(packages, own.PYTHONPATH) }),
  };
}

function joined(...paths: readonly (string | undefined)[]): string {
  return paths.filter((path) => path !== undefined && path !== '').join(delimiter);
}

function pick(server: Environment, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = server[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}
