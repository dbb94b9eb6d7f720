/** Of the package; the OpenAPI document and `troupe --version` show it. */
export const VERSION = '0.1.0';
