/** The operations of a comparison on each of its servers. Times are those of `performance.now()`. */

/** A live session of one notebook, as a client of that server sees it. It does one thing at a time. */
export interface Session {
  /** Runs one cell or all. Resolves with the time at which the client learned that the run has ended, with or without success. */
  run(cell?: number): Promise<number>;
  /** Replaces the code of a cell and runs it, in one request. Resolves as `run` does. */
  edit?(cell: number, code: string): Promise<number>;
  /**
   * Flushes one page of a file, which is the least that storing a run takes. Only the limit has this: servers store runs, or
   * not, by themselves.
   */
  flush?(): Promise<void>;
  /** Runs code outside of the cells, as agents do. Resolves with the time of the answer. */
  call(code: string): Promise<number>;
  /** Resolves when this text has been printed. */
  printed(text: string): Promise<unknown>;
  /** Asks for the end of the running work; `run` resolves when it has ended. */
  interrupt(): void;
  /** Resolves when code can run again after an interrupt. */
  idle(): Promise<unknown>;
  /** Resolves with the time at which the client received the death of the kernel. */
  lost(): Promise<number>;
  /** Starts to collect printed text. Returns a function that returns how many characters `x` have arrived. */
  collect(): () => number;
  close(): Promise<void>;
}

/** A request that is made again and again. */
export interface Repeated {
  readonly port: number;
  readonly request: Buffer;
  readonly expect: number;
  /** The place of a number of eight digits in the request, which must be different in each request. */
  readonly numberAt?: number;
}

/** How clients follow the printed text. */
export interface Subscription {
  readonly port: number;
  /** The requests that subscribers send: each takes the next one in turn. */
  readonly requests: readonly Buffer[];
  /** The id of the serving process, if that is not the subject's process. */
  readonly pid?: number;
}

/** A running server. Operations that it lacks are absent. */
export interface Subject {
  readonly pid: number;
  /** Milliseconds from the start of the process to its first answer. */
  readonly firstAnswerMs?: number;
  /**
   * Saves a notebook with these cells. Returns a function that opens a session on it, and resolves when the session
   * is ready.
   */
  prepare?(codes: readonly string[]): Promise<() => Promise<Session>>;
  /** Whether sessions of this server have `edit`, and can run all cells in one request. */
  readonly editsCells?: boolean;
  /** Writes a notebook file with these cells, and returns a function that runs it from the command line. */
  runFile?(codes: readonly string[]): Promise<() => Promise<void>>;
  /** Makes `count` files of Jupyter. Returns a function that converts them to notebooks of marimo, from the command line. */
  convertFiles?(count: number): Promise<() => Promise<void>>;
  /** Runs a notebook with these cells, and returns a function that exports it as an HTML page. */
  exportPage?(codes: readonly string[]): Promise<() => Promise<void>>;
  /** Reads a saved notebook of two cells. */
  reads?(): Promise<Repeated>;
  /** Saves a new notebook with one cell. */
  creates?(): Promise<Repeated>;
  /** Returns how clients subscribe to the printed text of a session. */
  subscription?(session: Session, count: number): Subscription;
  /** An event stream that sends the time, without a session. */
  readonly clock?: Subscription;
  end(): Promise<void>;
}

/** A server that can be started. */
export interface Contestant {
  readonly name: ContestantName;
  /** The description of the server, for the results. */
  readonly title: string;
  launch(): Promise<Subject>;
}

export type ContestantName = 'troupe' | 'marimo' | 'jupyter' | 'jupyter-tuned' | 'limit';
