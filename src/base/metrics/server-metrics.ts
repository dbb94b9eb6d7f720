/**
 * The metrics that the parts of a server count themselves, in one table. Names follow the
 * OpenTelemetry conventions in the spelling of Prometheus where there are conventions (HTTP 1.27;
 * generative AI 1.36, which are experimental). Other names begin with `troupe_`.
 * `src/operate/operators/server-gauges.ts` adds the metrics that are read only on request.
 */

import type { Histogram } from './instruments.ts';
import { Registry } from './registry.ts';

const REQUEST_S = [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const COMMIT_S = [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];
const KERNEL_START_S = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const LATENESS_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 300, 3600, 86_400];
const LONG_S = [0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600];
/** The bounds that the conventions recommend. */
const MODEL_S = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const TOKENS = [1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304];

export class ServerMetrics {
  readonly registry = new Registry();

  readonly requests = this.registry.histograms(
    {
      name: 'http_server_request_duration_seconds',
      help: 'Time from the arrival of a whole request until its reply was handed over, or until its stream began.',
    },
    REQUEST_S,
    'http_request_method',
    'http_route',
    'http_response_status_code',
  );
  readonly transitions = this.registry.counters(
    { name: 'troupe_actor_transitions', help: 'Changes of state or context of actors.' },
    'kind',
  );
  readonly refusals = this.registry.counters(
    { name: 'troupe_refusals', help: 'Commands that an actor refused in the state that it was in.' },
    'kind',
    'code',
  );
  readonly runs = this.registry.counters(
    { name: 'troupe_runs', help: 'Runs that have ended, by kind and status.' },
    'kind',
    'status',
  );
  readonly runDuration = this.registry.histograms(
    { name: 'troupe_run_duration_seconds', help: 'Time from the submission of a run until its end.' },
    LONG_S,
    'kind',
  );
  readonly jobFirings = this.registry.counters(
    { name: 'troupe_job_firings', help: 'Occurrences of jobs that have begun, by who fired the job.' },
    'trigger',
  );
  readonly jobLateness = this.registry.histograms(
    {
      name: 'troupe_job_lateness_seconds',
      help: 'Time from the instant of a schedule until its occurrence began.',
    },
    LATENESS_S,
  );
  readonly jobSkips = this.registry.counters(
    { name: 'troupe_job_skips', help: 'Occurrences of jobs that were skipped, by the code of the reason.' },
    'reason',
  );
  readonly jobEnds = this.registry.counters(
    { name: 'troupe_job_ends', help: 'Occurrences of jobs that had begun and are over, by status.' },
    'status',
  );
  readonly hookDeliveries = this.registry.counters(
    {
      name: 'troupe_hook_deliveries',
      help: 'Deliveries of hooks that are over, by status, and by the code of the reason if they died.',
    },
    'status',
    'reason',
  );
  readonly hookFailures = this.registry.counters(
    { name: 'troupe_hook_failures', help: 'Attempts of deliveries that failed, by the code of the reason.' },
    'reason',
  );
  readonly hookDelay = this.registry.histograms(
    {
      name: 'troupe_hook_delay_seconds',
      help: 'Time from an event, or from its replay, until its delivery has arrived.',
    },
    LATENESS_S,
  );
  readonly kernelStarts = this.registry.counters(
    { name: 'troupe_kernel_starts', help: 'Attempts to start a kernel, by outcome.' },
    'outcome',
  );
  readonly kernelStartDuration = this.registry.histograms(
    { name: 'troupe_kernel_start_duration_seconds', help: 'Time until a kernel had opened its notebook.' },
    KERNEL_START_S,
  );
  readonly kernelEnds = this.registry.counters(
    { name: 'troupe_kernel_ends', help: 'Kernels that have ended, by the cause.' },
    'cause',
  );
  readonly commits = this.registry.histograms(
    { name: 'troupe_store_commit_duration_seconds', help: 'Time until a commit was flushed to disk.' },
    COMMIT_S,
  );
  readonly streamCutoffs = this.registry.counters(
    { name: 'troupe_stream_cutoffs', help: 'Subscribers that were disconnected and asked to come back.' },
    'reason',
  );
  readonly spansDropped = this.registry.counters(
    { name: 'troupe_spans_dropped', help: 'Spans of traces that were discarded instead of being sent.' },
    'reason',
  );
  readonly unawaitedFaults = this.registry.counters(
    {
      name: 'troupe_unawaited_faults',
      help: 'Failures, by their place, of work that no request waits for. Each is a fault of the server and is in its log.',
    },
    'place',
  );
  readonly queries = this.registry.histograms(
    {
      name: 'troupe_datasource_query_duration_seconds',
      help: 'Time of a statement until its last row was read.',
    },
    LONG_S,
    'kind',
    'outcome',
  );
  readonly modelCalls = this.registry.histograms(
    {
      name: 'gen_ai_client_operation_duration_seconds',
      help: 'Time of one question to a model until the end of its answer.',
    },
    MODEL_S,
    'gen_ai_operation_name',
    'gen_ai_provider_name',
    'error_type',
  );
  readonly modelTokens = this.registry.histograms(
    { name: 'gen_ai_client_token_usage', help: 'Tokens of one question or one answer.' },
    TOKENS,
    'gen_ai_operation_name',
    'gen_ai_provider_name',
    'gen_ai_token_type',
  );
  readonly toolCalls = this.registry.histograms(
    { name: 'gen_ai_execute_tool_duration_seconds', help: 'Time of one call of a tool by an agent.' },
    LONG_S,
    'gen_ai_tool_name',
    'outcome',
  );
}

/** The durations of one operation's requests, by status. */
export class RouteDurations {
  readonly #metrics: ServerMetrics;
  readonly #method: string;
  readonly #route: string;
  readonly #byStatus = new Map<number, Histogram>();

  /** `path` has the names of its parameters, never their values. */
  constructor(metrics: ServerMetrics, method: string, path: string) {
    this.#metrics = metrics;
    this.#method = method;
    this.#route = path;
  }

  observe(status: number, seconds: number): void {
    let histogram = this.#byStatus.get(status);
    if (histogram === undefined) {
      histogram = this.#metrics.requests.of(this.#method, this.#route, String(status));
      this.#byStatus.set(status, histogram);
    }
    histogram.observe(seconds);
  }
}
