/** Every kind of database there is, in the order in which they are offered. */
import type { Connector } from './connector.ts';
import { postgres } from './connectors/postgres.ts';

export const CONNECTORS: readonly Connector[] = [postgres];
