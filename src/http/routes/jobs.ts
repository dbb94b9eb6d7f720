import type { Principal } from '#src/base/caller/principal.ts';
import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import { pathOf } from '#src/contract/wire/paths.ts';
import type { Jobs } from '#src/jobs/jobs.ts';
import { accepted, created, noContent, ok } from '../reply/reply.ts';
import { defineRoute, type RequestHome, type Route } from '../route.ts';

const tags = ['Jobs'];

/** Returns the path of the report of a run, which is an asset of the run. */
export function reportPath(runId: string, assetId: string): string {
  return pathOf('getRunAsset', { runId, assetId });
}

interface JobRequest {
  readonly principal: Principal;
  readonly params: { readonly jobId: string };
}

/** Jobs, which run notebooks and prompt agents at the instants of a schedule. */
export function jobRoutes(jobs: Jobs): readonly Route[] {
  // For an unknown job the worker that received the request answers.
  const homeOf = ({ principal, params }: JobRequest): RequestHome => {
    const id = jobs.homeOf(principal.workspaceId, params.jobId);
    return id === undefined ? undefined : { id };
  };
  return [
    defineRoute({
      ...OPERATIONS.createJob,
      summary: 'Create a job',
      description:
        'The job runs a notebook or prompts an agent at the instants of its schedule, with the rights of the caller, which are checked at each instant. ' +
        'Each instant has exactly one occurrence: it has a run, or was skipped with a reason.',
      tags,
      access: { action: 'job.write' },
      sharedTurn: true,
      homeInBody: true,
      homeOf: ({ body: { target } }) => ({
        id: 'notebookId' in target ? target.notebookId : target.agentSessionId,
      }),
      errors: ['not_found', 'conversation_read_only', 'quota_exceeded'],
      handle({ principal, body }) {
        const job = jobs.create(principal, body);
        return created(job, pathOf('getJob', { jobId: job.id }));
      },
    }),
    defineRoute({
      ...OPERATIONS.listJobs,
      summary: 'List jobs, by the time at which they were created',
      description:
        '`lastOccurrence` is the last occurrence that has ended or was skipped; null before the first.',
      tags,
      access: { action: 'job.read' },
      readsStoreOnly: true,
      errors: ['invalid_cursor'],
      handle: async ({ principal, query, signal }) => ok(await jobs.list(principal, { ...query, signal })),
    }),
    defineRoute({
      ...OPERATIONS.previewJob,
      whileFull: true,
      whileReadOnly: true,
      summary: 'Show the next instants of a schedule',
      description:
        'A schedule has fixed times if its seconds, minutes and hours have no `*` and no step. It fires a local time that the clocks ' +
        'skip at the next valid time, and a local time that comes twice only the first time. Every other schedule goes by the ' +
        'clock: it has no instant in a skipped hour, and goes on through a repeated hour.',
      tags,
      access: { action: 'job.read' },
      home: 'any',
      handle: ({ body }) => ok(jobs.preview(body.schedule, body.timeZone)),
    }),
    defineRoute({
      ...OPERATIONS.getJob,
      summary: 'Read a job with its state and its next instants',
      tags,
      access: { action: 'job.read' },
      homeOf,
      handle: ({ principal, params }) => ok(jobs.read(principal, params.jobId)),
    }),
    defineRoute({
      ...OPERATIONS.updateJob,
      summary: 'Change, pause or resume a job',
      description:
        'Replaces the members that are given. `expectedUpdatedAt` is the `updatedAt` of your last read. The owner of the job and ' +
        'owners of the workspace can change it. A job that is resumed begins with the next instant after now.',
      tags,
      access: { action: 'job.write' },
      homeOf,
      errors: ['stale_update'],
      handle: ({ principal, params, body }) => ok(jobs.change(principal, params.jobId, body)),
    }),
    defineRoute({
      ...OPERATIONS.deleteJob,
      summary: 'Delete a job',
      description:
        'Deletes the job and its occurrences; its runs are kept. Refused while an occurrence is in progress.',
      tags,
      access: { action: 'job.write' },
      sharedTurn: true,
      homeOf,
      errors: ['job_running'],
      handle({ principal, params }) {
        jobs.delete(principal, params.jobId);
        return noContent();
      },
    }),
    defineRoute({
      ...OPERATIONS.fireJob,
      summary: 'Fire a job now',
      description: 'Fires the job in addition to its schedule, also while it is paused.',
      tags,
      access: { action: 'job.write' },
      homeOf,
      errors: ['job_running'],
      handle({ principal, params: { jobId } }) {
        return accepted(jobs.fire(principal, jobId), pathOf('getJob', { jobId }));
      },
    }),
    defineRoute({
      ...OPERATIONS.listOccurrences,
      summary: 'List the occurrences of a job, oldest first unless the order says otherwise',
      description: 'A job keeps its last 1,000 occurrences.',
      tags,
      access: { action: 'job.read' },
      readsStoreOnly: true,
      errors: ['invalid_cursor'],
      handle: ({ principal, params, query }) => ok(jobs.occurrences(principal, params.jobId, query)),
    }),
  ];
}
