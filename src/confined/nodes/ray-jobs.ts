/**
 * The Jobs API of a Ray cluster: https://docs.ray.io/en/latest/cluster/running-applications/job-submission/api.html
 * It is asked with `request` and not with `fetch`: Ray refuses requests that look like those of a browser, and `fetch` sends
 * `Sec-Fetch-Mode`.
 */
import { readFileSync } from 'node:fs';
import { asList, asRecord, asText, orNull, ShapeError } from '../processes/json-shape.ts';

const TIMEOUT_MS = 10_000;
/** The list of all jobs contains the end of the log of each, with at most 20,000 characters. */
const MAX_ANSWER_BYTES = 16 * 2 ** 20;

export interface RayJobsOptions {
  /** Without a slash at the end. */
  readonly url: string;
  /** The file of the token. The file is read for each request, because operators replace it. */
  readonly tokenFile: string;
}

export interface RayJob {
  readonly id: string;
  readonly status: 'PENDING' | 'RUNNING' | 'STOPPED' | 'SUCCEEDED' | 'FAILED';
  /** Ray's explanation, and the end of the log of a job that has failed. */
  readonly message: string;
}

export interface RayJobOrder {
  readonly id: string;
  readonly command: string;
  readonly env: Readonly<Record<string, string>>;
  /** Resources of the machine that the job occupies while it runs, apart from one processor. */
  readonly resources: Readonly<Record<string, number>>;
}

/** All methods reject with one line for operators when Ray cannot be asked or refuses. */
export class RayJobs {
  readonly #options: RayJobsOptions;

  constructor(options: RayJobsOptions) {
    this.#options = options;
  }

  async submit({ id, command, env, resources }: RayJobOrder): Promise<void> {
    await this.#ask('POST', '/api/jobs/', {
      submission_id: id,
      entrypoint: command,
      entrypoint_num_cpus: 1,
      entrypoint_resources: resources,
      runtime_env: { env_vars: env },
    });
  }

  /** Returns undefined when there is no such job. */
  async find(id: string): Promise<RayJob | undefined> {
    const found = await this.#ask('GET', `/api/jobs/${id}`);
    return found === undefined ? undefined : decodeJob(found);
  }

  /** Returns the jobs whose id begins so. */
  async list(prefix: string): Promise<readonly RayJob[]> {
    const jobs = asList(await this.#ask('GET', '/api/jobs/'), asRecord, 'jobs');
    return jobs
      .filter(({ submission_id: id }) => typeof id === 'string' && id.startsWith(prefix))
      .map((job) => decodeJob(job));
  }

  /** Ends a job. Does nothing when the job has ended or does not exist. */
  async stop(id: string): Promise<void> {
    await this.#ask('POST', `/api/jobs/${id}/stop`, {});
  }

  /** Deletes a job that has ended, with its log. */
  async delete(id: string): Promise<void> {
    await this.#ask('DELETE', `/api/jobs/${id}`);
  }

  /**
   * Resolves with the answer, or with undefined when Ray does not know the job. Answers are never quoted,
   * because they may contain the request.
   */
  async #ask(method: 'GET' | 'POST' | 'DELETE', path: string, body?: object): Promise<unknown> {
    const { url } = this.#options;
    const token = this.#readToken();
    const { request } = await import('undici');
    let status: number;
    let text: string;
    try {
      const answer = await request(`${url}${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: body === undefined ? null : JSON.stringify(body),
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      status = answer.statusCode;
      text = await readBounded(answer.body);
    } catch (error) {
      throw new Error(`Ray at ${url} cannot be asked: ${reasonOf(error)}.`, { cause: error });
    }
    if (status === 404 && path !== '/api/jobs/') return undefined;
    if (status === 401 || status === 403)
      throw new Error(`Ray at ${url} refuses the token of TROUPE_RAY_TOKEN_FILE.`);
    if (status < 200 || status > 299)
      throw new Error(
        `Ray at ${url} answered ${method} ${path} with ${status}: see the log of its dashboard.`,
      );
    try {
      return JSON.parse(text) as unknown;
    } catch (error) {
      throw new Error(`${url} is not the Jobs API of a Ray cluster: its answer is not JSON.`, {
        cause: error,
      });
    }
  }

  #readToken(): string {
    const { tokenFile } = this.#options;
    let token: string;
    try {
      token = readFileSync(tokenFile, 'utf8').trim();
    } catch (error) {
      throw new Error(`The token of Ray cannot be read: ${(error as Error).message}.`, { cause: error });
    }
    if (!/^[\x21-\x7e]{1,4096}$/.test(token))
      throw new Error(`${tokenFile} has no token: it must have one line of visible ASCII characters.`);
    return token;
  }
}

async function readBounded(body: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of body) {
    bytes += piece.length;
    if (bytes > MAX_ANSWER_BYTES) throw new Error('its answer is too long');
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
}

function reasonOf(error: unknown): string {
  const { name, code, message } = error as NodeJS.ErrnoException;
  return name === 'TimeoutError' ? 'it does not answer' : (code ?? message);
}

const STATUSES = ['PENDING', 'RUNNING', 'STOPPED', 'SUCCEEDED', 'FAILED'] as const;

function decodeJob(value: unknown): RayJob {
  const job = asRecord(value, 'a job');
  const status = STATUSES.find((known) => known === job.status);
  if (status === undefined) throw new ShapeError('a job of Ray has an unknown status');
  return {
    id: asText(job.submission_id, 'submission_id'),
    status,
    message: orNull(job.message, asText, 'message') ?? '',
  };
}
