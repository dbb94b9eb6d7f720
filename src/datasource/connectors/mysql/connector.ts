import { Type } from 'typebox';
import { CaCertificate, TlsMode } from '../../egress/tls-mode.ts';
import { type Connector, defineConnector } from '../connector.ts';
import { checkCertificate } from '../http/address.ts';
import { Host, nameMember, Password, portMember, User } from '../members.ts';
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
        host: Host,
        port: portMember(3306),
        database: nameMember('Database', 'Database that is used where a statement names none.', 'sales'),
        user: User,
        password: Password,
        tls: Type.Optional(TlsMode),
        ca_certificate: Type.Optional(CaCertificate),
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
      const { openMysql } = await import('./session.ts');
      return openMysql({ ...connection, route: await connectTo(connection) });
    },
    placeholder: () => '?',
    classify: classifyMysql,
    explain: explainMysql,
  });
}
