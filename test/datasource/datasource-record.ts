import type { DatasourceRecord } from '#storage/records/datasources.ts';

/** A datasource as it is stored. */
export const RECORD: DatasourceRecord = {
  id: 'ds_1',
  slug: 'sales',
  kind: 'postgres',
  name: null,
  revision: 1,
  embedded: false,
  createdBy: 'ann',
  createdAt: '',
  updatedAt: '',
};
