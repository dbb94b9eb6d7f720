import {
  JobChangeSchema,
  JobSchema,
  NewJobSchema,
  OccurrenceSchema,
  ScheduleInstantsSchema,
  SchedulePreviewSchema,
} from '../job.ts';
import { JobListQuery, OrderedPageQuery } from '../lists.ts';
import { EmptyBodySchema, pageSchema } from '../shape.ts';
import { declareOperations } from './operation.ts';

/** Jobs and their occurrences. */
export const JOB_OPERATIONS = declareOperations({
  listJobs: {
    query: JobListQuery,
    responses: { 200: { description: 'A page of jobs.', schema: pageSchema('JobPage', JobSchema) } },
  },
  createJob: {
    body: NewJobSchema,
    responses: {
      201: {
        description: 'The job was created.',
        schema: JobSchema,
        headers: { location: 'The path of the job.' },
      },
    },
  },
  previewJob: {
    body: SchedulePreviewSchema,
    responses: { 200: { description: 'The next instants of the schedule.', schema: ScheduleInstantsSchema } },
  },
  getJob: { responses: { 200: { description: 'The job.', schema: JobSchema } } },
  updateJob: {
    body: JobChangeSchema,
    responses: { 200: { description: 'The changed job.', schema: JobSchema } },
  },
  deleteJob: { responses: { 204: { description: 'The job was deleted.' } } },
  fireJob: {
    body: EmptyBodySchema,
    optionalBody: true,
    responses: {
      202: {
        description: 'The occurrence, which has begun, or was skipped with a reason.',
        schema: OccurrenceSchema,
        headers: { location: 'The path of the job.' },
      },
    },
  },
  listOccurrences: {
    query: OrderedPageQuery,
    responses: {
      200: {
        description: 'A page of occurrences.',
        schema: pageSchema('JobOccurrencePage', OccurrenceSchema),
      },
    },
  },
});
