/** The JSON Schema of all kinds of connections, and the check against it. */

import { AppError, type Violation } from '#src/base/errors/errors.ts';
import { invariant } from '#src/base/errors/invariant.ts';
import type { Connector } from './connector.ts';
import { CONNECTORS } from './registry.ts';

/**
 * A complete connection: its kind, and the members that the connector of this kind defines. It is
 * secret: never log it.
 */
export type ConnectionSettings = Readonly<Record<string, unknown>> & { readonly kind: string };

const PATH = '/connection';

/** The JSON Schema (draft 2020-12) of a datasource's `connection`. */
export const connectionSchemaDocument = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  $id: 'urn:troupe:datasource-connection',
  title: 'Datasource connection',
  description:
    'How a database is reached. `kind` selects the connector, which defines the other members. Members that are `writeOnly` are secret: they are stored sealed and never returned.',
  type: 'object',
  required: ['kind'],
  oneOf: CONNECTORS.map(({ schema }) => schema),
} as const;

/**
 * The schema of a datasource's `connection` for the OpenAPI document: the same union, with a name for each kind and
 * with `kind` as the discriminator.
 */
export const connectionComponent = {
  description: connectionSchemaDocument.description,
  anyOf: CONNECTORS.map(({ kind, schema }) => ({ ...schema, $id: `${capitalized(kind)}Connection` })),
  discriminator: { propertyName: 'kind' },
} as const;

/**
 * Returns the connection if it is complete. Throws `invalid_request` with one violation per mistake, at paths below
 * `/connection`. The error holds nothing of the value.
 */
export function parseConnection(value: unknown): ConnectionSettings {
  const { connector, violations } = examine(value);
  if (connector !== undefined && violations.length === 0 && isObject(value))
    return { ...value, kind: connector.kind };
  const [first] = violations;
  const detail =
    first === undefined ? 'The connection does not match its schema.' : `${first.path} ${first.message}.`;
  throw new AppError('invalid_request', detail, { errors: violations });
}

/** Returns the connector of a kind. Throws when there is none. */
export function connectorOf(kind: string): Connector {
  const connector = CONNECTORS.find((one) => one.kind === kind);
  invariant(connector !== undefined, 'A stored connection has a kind with a connector.', kind);
  return connector;
}

function examine(value: unknown): {
  readonly connector?: Connector;
  readonly violations: readonly Violation[];
} {
  if (!isObject(value)) return { violations: [{ path: PATH, message: 'must be object' }] };
  if (!Object.hasOwn(value, 'kind'))
    return { violations: [{ path: `${PATH}/kind`, message: 'is required' }] };
  const connector = CONNECTORS.find(({ kind }) => kind === value.kind);
  if (connector !== undefined) return { connector, violations: connector.violations(value, PATH) };
  const kinds = CONNECTORS.map(({ kind }) => kind).join(', ');
  return { violations: [{ path: `${PATH}/kind`, message: `must be one of ${kinds}` }] };
}

function capitalized(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
