import { Type } from 'typebox';
import { MSSQL_SYNTAX } from '../../query/placeholders.ts';
import { ROW_AND_BATCH_BYTES } from '../../rows.ts';
import { defineConnector } from '../connector.ts';
import { loadDriver } from '../drivers.ts';
import { checkCertificate } from '../http/address.ts';
import { serverMembers } from '../members.ts';
import { isTedious } from './driver.ts';
import { classifyMssql, explainMssql, openMssql } from './link.ts';

/** The connector of Microsoft SQL Server. */
export const mssql = defineConnector({
  kind: 'mssql',
  title: 'Microsoft SQL Server',
  embedded: false,
  readsByWords: true,
  schema: Type.Object(
    {
      kind: Type.Literal('mssql'),
      ...serverMembers(1433),
    },
    {
      title: 'Microsoft SQL Server',
      description: 'SQL Server or Azure SQL, with a SQL login.',
      additionalProperties: false,
      examples: [
        {
          kind: 'mssql',
          host: 'db.example.com',
          port: 1433,
          database: 'sales',
          user: 'analyst',
          password: 'secret',
        },
      ],
    },
  ),
  check: ({ ca_certificate }) => checkCertificate(ca_certificate),
  target: ({ host, port }) => ({ host, port }),
  open: async (connection, { connectTo, drivers }) => {
    const driver = await loadDriver(drivers, 'tedious', isTedious);
    return openMssql(driver, { ...connection, connectTo, route: await connectTo(connection) });
  },
  maxBytesBetweenBatches: ROW_AND_BATCH_BYTES,
  syntax: MSSQL_SYNTAX,
  placeholder: (position) => `@p${position}`,
  classify: classifyMssql,
  explain: explainMssql,
});
