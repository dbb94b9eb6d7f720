/** Every kind of database there is, in the order in which they are offered. */
import type { Connector } from './connector.ts';
import { bigquery } from './connectors/bigquery.ts';
import { clickhouse } from './connectors/clickhouse.ts';
import { databricks } from './connectors/databricks.ts';
import { duckdb, files, sqlite } from './connectors/embedded.ts';
import { mssql } from './connectors/mssql.ts';
import { mariadb, mysql } from './connectors/mysql.ts';
import { postgres } from './connectors/postgres.ts';
import { redshift } from './connectors/redshift.ts';
import { snowflake } from './connectors/snowflake.ts';
import { trino } from './connectors/trino.ts';

export const CONNECTORS: readonly Connector[] = [
  postgres,
  mysql,
  mariadb,
  clickhouse,
  duckdb,
  sqlite,
  files,
  snowflake,
  bigquery,
  mssql,
  redshift,
  databricks,
  trino,
];
