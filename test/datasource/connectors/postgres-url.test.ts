import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type PostgresAddress, parsePostgresUrl } from '#src/datasource/connectors/postgres/url.ts';

const PLAIN: PostgresAddress = {
  host: 'h',
  port: 5432,
  database: 'd',
  user: 'u',
  password: 'p',
  tls: undefined,
  directTls: false,
  requireChannelBinding: false,
};

const ACCEPTED: Readonly<Record<string, Partial<PostgresAddress>>> = {
  'postgresql://u:p@h/d': {},
  'postgres://u:p@h:6543/d': { port: 6543 },
  'POSTGRES://u:p@h/d': {},
  'postgresql://u@h/d': { password: '' },
  'postgresql://u%40x:p%2F%3F%23@h/d%20e': { user: 'u@x', password: 'p/?#', database: 'd e' },
  'postgresql://u:p@[::1]:5432/d': { host: '[::1]' },
  'postgresql://u:p@h/d?sslmode=disable': { tls: 'disable' },
  'postgresql://u:p@h/d?sslmode=allow': { tls: 'prefer' },
  'postgresql://u:p@h/d?sslmode=prefer': { tls: 'prefer' },
  'postgresql://u:p@h/d?sslmode=require&channel_binding=require': {
    tls: 'require',
    requireChannelBinding: true,
  },
  'postgresql://u:p@h/d?sslmode=verify-ca': { tls: 'verify-ca' },
  'postgresql://u:p@h/d?sslmode=verify-full&application_name=x&connect_timeout=5': { tls: 'verify-full' },
  'postgresql://u:p@h/d?sslrootcert=system': { tls: 'verify-full' },
  'postgresql://u:p@h/d?sslnegotiation=direct': { tls: 'verify-full', directTls: true },
  'postgresql://u:p@h/d?sslnegotiation=direct&sslmode=require': { tls: 'require', directTls: true },
};

for (const [text, parts] of Object.entries(ACCEPTED)) {
  test(`${text} is parsed`, () => {
    assert.deepEqual(parsePostgresUrl(text), { ok: true, address: { ...PLAIN, ...parts } });
  });
}

const PARAMETERS =
  'has a parameter that is not supported; supported are sslmode, sslnegotiation, sslrootcert, channel_binding, gssencmode, target_session_attrs, connect_timeout, application_name';
const HOST = 'must name a host; sockets and files are not supported';

const REFUSED: Readonly<Record<string, string>> = {
  'host=h dbname=d user=u': 'must be a URL such as postgresql://user:password@host:5432/database',
  'mysql://u:p@h/d': 'must be a URL such as postgresql://user:password@host:5432/database',
  '/var/run/postgresql': 'must be a URL such as postgresql://user:password@host:5432/database',
  'postgresql://u:p@a,b/d': 'must name one host only',
  'postgresql://u:p@a:1,b:2/d': 'must name one host only',
  'postgresql://u:p@/d':
    'is not a valid URL; characters such as / ? # @ in user and password are written as %2F %3F %23 %40',
  'postgresql:///d?user=u': HOST,
  'postgresql://u:p@%2Fvar%2Frun%2Fpostgresql/d': HOST,
  'postgresql://u:p@h%00/d': HOST,
  'postgresql://h/d': 'must name a user',
  'postgresql://u:p@h': 'must name a database',
  'postgresql://u:p@h/': 'must name a database',
  'postgresql://u:p@h:0/d': 'must name a port from 1 to 65535',
  'postgresql://u:p%zz@h/d': 'has a part that is not properly percent-encoded',
  'postgresql://u%00options:p@h/d': 'has a part that is not properly percent-encoded',
  'postgresql://u:p@h/d#x': 'must not have a # part',
  'postgresql://u:p@h/d?sslmode=require&sslmode=disable': 'has a parameter twice',
  'postgresql://u:p@h/d?sslmode=off': 'has a value for sslmode that is not supported',
  'postgresql://u:p@h/d?sslrootcert=/etc/ssl/ca.pem': 'has a value for sslrootcert that is not supported',
  'postgresql://u:p@h/d?target_session_attrs=standby':
    'has a value for target_session_attrs that is not supported',
  'postgresql://u:p@h/d?sslrootcert=system&sslmode=require':
    'has sslrootcert=system, which goes with sslmode=verify-full only',
  'postgresql://u:p@h/d?sslnegotiation=direct&sslmode=prefer':
    'has sslnegotiation=direct, which goes with sslmode=require or stronger',
  ...Object.fromEntries(
    [
      'host',
      'hostaddr',
      'port',
      'service',
      'passfile',
      'sslcert',
      'sslkey',
      'options',
      'user',
      'password',
      'ssl',
      'uselibpqcompat',
      'constructor',
    ].map((name) => [`postgresql://u:p@h/d?${name}=x`, PARAMETERS]),
  ),
};

for (const [text, message] of Object.entries(REFUSED)) {
  test(`${text} is refused`, () => {
    assert.deepEqual(parsePostgresUrl(text), { ok: false, message });
  });
}
