/**
 * The part of the SQL Server driver that is used here, and additions to it. The driver is installed
 * on demand.
 */
import type { EventEmitter } from 'node:events';

/** A statement that is sent. */
export interface TdsRequest extends EventEmitter {
  addParameter(name: string, type: unknown, value: unknown): void;
  pause(): void;
  resume(): void;
}

/** A connection of the driver. */
export interface TdsConnection extends EventEmitter {
  connect(done: (error?: Error) => void): void;
  execSql(request: TdsRequest): void;
  cancel(): boolean;
  /** Makes the server reset the connection, in the same request that sends the usual settings. */
  reset(done: (error?: Error | null) => void): void;
  close(): void;
  /** This method is private in the driver. */
  createTokenStreamParser(
    message: unknown,
    handler: unknown,
  ): EventEmitter & { readonly parser: EventEmitter };
}

/** The used part of the package `tedious`. */
export interface Tedious {
  readonly Connection: new (config: object) => TdsConnection;
  readonly Request: new (sql: string, done: (error?: Error | null, rowCount?: number) => void) => TdsRequest;
  readonly TYPES: Readonly<Record<string, unknown>>;
}

/** Returns whether this is the driver, in a version that has the used parts. */
export function isTedious(driver: unknown): driver is Tedious {
  const { Connection, Request, TYPES } = Object(driver) as Partial<Tedious>;
  if (typeof Connection !== 'function' || typeof Request !== 'function' || TYPES === undefined) return false;
  return typeof Reflect.get(Connection.prototype, 'createTokenStreamParser') === 'function';
}

/**
 * Calls `end` when the driver cannot read the server's data, or when a listener throws while it gets them. The
 * driver does not listen for errors of its parser, so each of them would otherwise end the process.
 */
export function endOnUnreadable(connection: TdsConnection, end: () => void): void {
  let isConnecting = true;
  connection.once('connect', () => {
    isConnecting = false;
  });
  const create = connection.createTokenStreamParser.bind(connection);
  connection.createTokenStreamParser = (message, handler) => {
    const tokens = create(message, handler);
    tokens.parser.on('error', () => {
      end();
      if (isConnecting) tokens.emit('end'); // without this the login would wait for the rest of the answer
    });
    return tokens;
  };
}
