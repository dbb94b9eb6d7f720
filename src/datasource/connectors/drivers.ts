/** Drivers that are too heavy to come with the server: imported when first used, and named when they are missing. */
import { codeOf, DatasourceFailure } from '../failure.ts';

/** The versions the connectors were made for. */
export const OPTIONAL_DRIVERS = { tedious: '19.2.2' } as const;
export type OptionalDriver = keyof typeof OPTIONAL_DRIVERS;

/** Rejects like `import` when there is no such package. */
export type DriverLoader = (name: OptionalDriver) => Promise<unknown>;

/** Those installed beside the server. */
export const installedDrivers: DriverLoader = (name) => import(name);

/** Throws `driver_missing`, which says how to install it. */
export async function loadDriver(load: DriverLoader, name: OptionalDriver): Promise<unknown> {
  try {
    return await load(name);
  } catch (error) {
    if (codeOf(error) !== 'ERR_MODULE_NOT_FOUND' && codeOf(error) !== 'MODULE_NOT_FOUND')
      throw new DatasourceFailure('failed');
    const command = `npm install --no-save ${name}@${OPTIONAL_DRIVERS[name]}`;
    throw new DatasourceFailure(
      'driver_missing',
      `The driver for this kind of database is not installed on the server. Install it there with: ${command}`,
    );
  }
}
