import { Type } from 'typebox';
import { MYSQL_SYNTAX } from '../../query/placeholders.ts';
import { type Connector, defineConnector } from '../connector.ts';
import { checkCertificate } from '../http/address.ts';
import { serverMembers } from '../members.ts';
import { classifyMysql, explainMysql } from './errors.ts';

/** The connector of MySQL. */
export const mysql = mysqlConnector('mysql', 'MySQL', 'A MySQL server, or one that speaks its protocol.');
/** The connector of MariaDB, which speaks the protocol of MySQL. */
export const mariadb = mysqlConnector('mariadb', 'MariaDB', 'A MariaDB server.');

function mysqlConnector<K extends 'mysql' | 'mariadb'>(
  kind: K,
  title: string,
  description: string,
): Connector {
  return defineConnector({
    kind,
    title,
    embedded: false,
    schema: Type.Object(
      {
        kind: Type.Literal(kind),
        ...serverMembers(3306),
      },
      {
        title,
        description,
        additionalProperties: false,
        examples: [
          {
            kind,
            host: 'db.example.com',
            port: 3306,
            database: 'sales',
            user: 'analyst',
            password: 'secret',
          },
        ],
      },
    ),
    check: ({ ca_certificate }) => checkCertificate(ca_certificate),
    target: ({ host, port }) => ({ host, port }),
    async open(connection, { connectTo }) {
      const { openMysql } = await import('./link.ts');
      return openMysql({ ...connection, route: await connectTo(connection) });
    },
    syntax: MYSQL_SYNTAX,
    placeholder: () => '?',
    classify: classifyMysql,
    explain: explainMysql,
  });
}
