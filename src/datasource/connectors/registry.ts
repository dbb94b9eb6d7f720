import { duckdb, filesConnector, sqlite } from '../embedded/connectors.ts';
import { bigquery } from './bigquery/connector.ts';
import { clickhouse } from './clickhouse/connector.ts';
import type { Connector } from './connector.ts';
import { databricks } from './databricks/connector.ts';
import { mssql } from './mssql/connector.ts';
import { mariadb, mysql } from './mysql/connector.ts';
import { postgres } from './postgres/connector.ts';
import { redshift } from './redshift/connector.ts';
import { snowflake } from './snowflake/connector.ts';
import { trino } from './trino/connector.ts';

/** Every kind of database, in the order in which the API offers them. */
export const CONNECTORS: readonly Connector[] = [
  postgres,
  mysql,
  mariadb,
  clickhouse,
  duckdb,
  sqlite,
  filesConnector,
  snowflake,
  bigquery,
  mssql,
  redshift,
  databricks,
  trino,
];
