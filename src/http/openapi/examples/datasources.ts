/** Examples of datasources. */
import type { ConnectionTest, Datasource, DatasourceGrant } from '#src/contract/wire/datasource.ts';
import { AT, times, USER } from './example-values.ts';

const datasource: Datasource = {
  id: 'ds_01k6gq0000gggggggggggggggg',
  slug: 'sales',
  kind: 'postgres',
  name: 'Sales',
  revision: 1,
  configured: true,
  embedded: false,
  createdBy: USER,
  ...times,
};
const connectionTest: ConnectionTest = { ok: true, message: 'The connection works.', elapsedMs: 12.4 };
const datasourceGrant: DatasourceGrant = {
  subject: 'role:editor',
  createdBy: USER,
  createdAt: AT,
};

export const DATASOURCES_EXAMPLES = {
  ConnectionTest: connectionTest,
  Datasource: datasource,
  DatasourceGrant: datasourceGrant,
  DeletedDatasource: { slug: 'sales', deleted: true },
};
