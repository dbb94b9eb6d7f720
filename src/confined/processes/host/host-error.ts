/**
 * The kernel host cannot run here. `message` is one line for the operator and names the solution.
 */
export class KernelHostError extends Error {
  override readonly name = 'KernelHostError';
  readonly code: 'python_missing' | 'marimo_unsupported' | 'confinement_unavailable' | 'kernel_host_failed';
  constructor(code: KernelHostError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
