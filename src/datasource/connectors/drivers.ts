/**
 * Drivers that are too large to come with the server. They are imported on first use. When one is
 * missing, the error names it.
 */
import { codeOf, DatasourceFailure } from '../failure.ts';

/** The versions that the connectors were written for. */
export const OPTIONAL_DRIVERS = { tedious: '19.2.2' } as const;
/** The package name of an optional driver. */
export type OptionalDriver = keyof typeof OPTIONAL_DRIVERS;

/** Imports a driver. Rejects like `import` when the package is missing. */
export type DriverLoader = (name: OptionalDriver) => Promise<unknown>;

/** Imports drivers that are installed together with the server. */
export const installedDrivers: DriverLoader = (name) => import(name);

/**
 * Returns the driver. Throws `driver_missing`, with the command that installs it, when the driver
 * is missing or `isKnown` does not recognise it, for example because another version is installed.
 */
export async function loadDriver<T>(
  load: DriverLoader,
  name: OptionalDriver,
  isKnown: (driver: unknown) => driver is T,
): Promise<T> {
  const driver = await loaded(load, name);
  if (isKnown(driver)) return driver;
  throw missing('installed on the server in another version than it was written for.', name);
}

async function loaded(load: DriverLoader, name: OptionalDriver): Promise<unknown> {
  try {
    return await load(name);
  } catch (error) {
    if (codeOf(error) !== 'ERR_MODULE_NOT_FOUND' && codeOf(error) !== 'MODULE_NOT_FOUND')
      throw new DatasourceFailure('failed');
    throw missing('not installed on the server.', name);
  }
}

function missing(what: string, name: OptionalDriver): DatasourceFailure {
  const command = `npm install --no-save ${name}@${OPTIONAL_DRIVERS[name]}`;
  return new DatasourceFailure(
    'driver_missing',
    `The driver for this kind of database is ${what} Install it on the server with: ${command}`,
  );
}
