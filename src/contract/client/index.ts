/** The exports of the package `troupe-client`. */
export { ApiError, CodeInterrupted, ConnectionError, type RequestViolation } from './api-error.ts';
export type {
  ClientOptions,
  OutgoingRequest,
  PostOptions,
  ReadOptions,
  RequestOptions,
  Tagged,
  WaitOptions,
  WriteOptions,
} from './connection.ts';
export type { FollowOptions } from './event-stream.ts';
export type { CellOutcome, CodeOutcome, Picture, RunOutcome, Shown, Table } from './results.ts';
export type { RunHandle, SessionEvent } from './run-handle.ts';
export type { RunOptions, Session, SessionCodeOptions } from './session.ts';
export { type OpenOptions, SessionFailed, Troupe, type TroupeOptions } from './troupe.ts';
