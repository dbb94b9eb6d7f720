const ENTRIES = {
  cell_failed: 'A cell failed. `cells` names all failed cells, and `message` is about the first one.',
  kernel_command_failed: 'The kernel could not carry out the request.',
  kernel_start_failed: 'The kernel did not start.',
  kernel_start_timeout: 'The kernel did not become ready in time.',
  kernel_exited: 'The kernel ended by itself.',
  kernel_killed: 'The kernel was killed: by a signal, or because an interrupt did not stop it.',
  kernel_out_of_memory: 'The kernel used more memory than it may.',
  kernel_stuck: 'The kernel did not end when it was killed.',
  kernel_protocol_error:
    'The server ended the kernel, because it sent a message that the server could not read.',
  kernel_host_lost: 'The process that runs all kernels ended.',
  timed_out: 'The work took longer than the `timeoutS` of its request.',
  stopped: 'The kernel was stopped by the server.',
  session_closed: 'The session was closed.',
  server_stopped: 'The server was stopped.',
  agent_failed: 'The agent could not continue because of a fault of the server.',
  agent_time_limit: 'The prompt ran longer than the time limit of prompts.',
  agent_step_limit: 'The prompt took more steps than the limit of prompts allows.',
  agent_token_limit: 'The prompt used more tokens than the limit of prompts allows.',
  model_answer_invalid: "The model's server sent a response that is not an answer.",
  model_answer_too_long: "The model's answer did not come to an end.",
  model_auth: 'The provider does not accept the key.',
  model_context_exceeded: 'The conversation is too long for the model.',
  model_failed: "The model's server reported a failure.",
  model_overloaded: "The model's server is overloaded.",
  model_rate_limited: 'The provider limits how often the model may be asked.',
  model_refused: 'The model refused to answer.',
  model_request_refused: 'The provider refused the request.',
  model_silent: 'The model sent nothing for too long.',
  model_unknown: 'The provider has no such model.',
  model_unreachable: "The model's server cannot be reached.",
} as const;

/** A code with which a run or a session fails. */
export type FailureCode = keyof typeof ENTRIES;

/**
 * Every code with which a run or a session can fail, with its meaning. A published code never changes. The
 * documentation lists them.
 */
export const FAILURES: Readonly<Record<FailureCode, string>> = ENTRIES;
