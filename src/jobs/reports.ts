/**
 * Reports of jobs: the static page of a notebook after a run. A report is an asset of its run, so it is served and deleted as the other
 * outputs of the run are, and counts towards the storage of the workspace.
 */

import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { JobReason } from '#machines/job.ts';
import { inSlices } from '#src/base/async/slices.ts';
import { AppError } from '#src/base/errors/errors.ts';
import { faultPoint } from '#src/base/fault-points.ts';
import { type AssetId, newId, type OccurrenceId } from '#src/base/ids.ts';
import type { Occurrence } from '#src/contract/wire/job.ts';
import type { NotebookFiles } from '#src/notebook/saved/notebook-files.ts';
import type { ActorId } from '#src/runtime/actors/address.ts';
import type { RunReader } from '#src/runtime/runs/run-reader.ts';
import type { RunPlaneContext } from '#src/runtime/sessions/plane-context.ts';
import { putAsset } from '#storage/records/assets.ts';
import { encodeBlob } from '#storage/records/blobs.ts';
import type { JobStates } from './job-states.ts';

/** The largest report, in bytes. */
export const MAX_REPORT_BYTES = 16 * 1024 * 1024;
/** How many bytes are hashed in one step. */
const STEP_BYTES = 256 * 1024;
/** How often, and after which pause, a page is asked for again while the kernel host starts, which writes pages. */
const MAX_PAUSES = 120;
const PAUSE_MS = 500;

const TOO_LARGE: JobReason = {
  code: 'report_too_large',
  message: 'The page is larger than 16 MiB. Show less data in the outputs of the notebook.',
};
const DISK_FULL: JobReason = { code: 'storage_full', message: 'The disk of the server was full.' };
const BROKEN: JobReason = {
  code: 'internal',
  message: 'The report was not made because of a fault of the server.',
};

interface ReportContext extends Pick<RunPlaneContext, 'store' | 'log'> {
  readonly runs: { readonly reader: Pick<RunReader, 'exists'> };
}

export interface ReportParts {
  readonly files: Pick<NotebookFiles, 'export'>;
  /** Returns the address from which a page loads its front end; undefined means a public address. */
  readonly assetUrl: () => string | undefined;
  /** Returns the path of an asset of a run. */
  readonly pathOf: (runId: string, assetId: string) => string;
  /** Returns whether the server is ending. */
  readonly isEnding: () => boolean;
}

export class Reports {
  readonly #context: ReportContext;
  readonly #states: JobStates;
  readonly #parts: ReportParts;

  constructor(context: ReportContext, states: JobStates, parts: ReportParts) {
    this.#context = context;
    this.#states = states;
    this.#parts = parts;
  }

  /**
   * Keeps the page of the copy that an attempt has run, if the job wants it and the occurrence ended with this attempt. The occurrence
   * then names the report, or the reason why there is none. Resolves with false when the server ends before, so that the next process
   * keeps the page. Never rejects.
   */
  async keep(job: ActorId, occurrenceId: OccurrenceId, attempt: number, copyId: string): Promise<boolean> {
    const stored = this.#states.find(job.workspaceId, job.id);
    const occurrence = this.#states.occurrence(job, occurrenceId);
    if (stored?.definition.outputs.includes('html') !== true) return true;
    if (occurrence === undefined || !isDue(occurrence, attempt)) return true;
    const { runId } = occurrence;
    if (runId === null) return true;
    const reason = await this.#make(job, occurrenceId, runId, copyId).catch((error: unknown) =>
      this.#reasonOf(error),
    );
    if (reason !== null && this.#parts.isEnding()) return false;
    if (reason !== null) this.#states.changeOccurrence(job, occurrenceId, { report: { url: null, reason } });
    return true;
  }

  /** Stores the report, and names it in the occurrence in the same commit. Resolves with the reason why there is none, or with null. */
  async #make(
    job: ActorId,
    occurrenceId: OccurrenceId,
    runId: string,
    copyId: string,
  ): Promise<JobReason | null> {
    const { store, runs } = this.#context;
    const { workspaceId } = job;
    const bytes = await this.#page(workspaceId, copyId);
    if (bytes.byteLength > MAX_REPORT_BYTES) return TOO_LARGE;
    const { sha256, record } = await inSlices(encoded(bytes), workspaceId);
    if (store.isFull) return DISK_FULL;
    if (!runs.reader.exists(workspaceId, runId)) return null; // deleted meanwhile
    const assetId = newId<AssetId>('asset');
    store.write((tx) =>
      putAsset(tx, { mimetype: 'text/html', sha256, bytes, record }, copyId, workspaceId, runId, assetId),
    );
    const url = this.#parts.pathOf(runId, assetId);
    this.#states.changeOccurrence(job, occurrenceId, { report: { url, reason: null } });
    faultPoint('job.reported');
    return null;
  }

  /**
   * Resolves with the page of a copy. After the start of a server, attempts of the process before it are ended earlier than the kernel
   * host is up.
   */
  async #page(workspaceId: ActorId['workspaceId'], copyId: string): Promise<Uint8Array> {
    const request = { format: 'html', assetUrl: this.#parts.assetUrl() } as const;
    for (let pauses = 0; ; pauses++) {
      try {
        return (await this.#parts.files.export(workspaceId, copyId, request)).content;
      } catch (error) {
        const isStarting = error instanceof AppError && error.code === 'unavailable';
        if (!isStarting || pauses >= MAX_PAUSES || this.#parts.isEnding()) throw error;
        await pause(PAUSE_MS);
      }
    }
  }

  #reasonOf(error: unknown): JobReason {
    if (error instanceof AppError) return { code: error.code, message: error.message };
    this.#context.log.error({ err: error }, 'the report of a job could not be made');
    return BROKEN;
  }
}

/** Returns whether an occurrence has ended with this attempt, and has no report yet. */
function isDue({ status, attempts, report }: Occurrence, attempt: number): boolean {
  return report === undefined && attempts === attempt && (status === 'completed' || status === 'failed');
}

function* encoded(
  bytes: Uint8Array,
): Generator<undefined, { readonly sha256: string; readonly record: Uint8Array }> {
  const hash = createHash('sha256');
  for (let from = 0; from < bytes.byteLength; from += STEP_BYTES) {
    hash.update(bytes.subarray(from, from + STEP_BYTES));
    yield;
  }
  return { sha256: hash.digest('hex'), record: yield* encodeBlob([bytes]) };
}
