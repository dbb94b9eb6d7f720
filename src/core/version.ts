/** The version of the package, as the OpenAPI document and `troupe --version` show it. */
export const VERSION = '0.1.0';
