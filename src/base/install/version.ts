/** The version of the package, as the OpenAPI document and `troupe --version` show it. */
export const VERSION = '1.0.0';
