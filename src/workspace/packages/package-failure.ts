/** Packages could not be installed. The message is for people: the reason, with advice. */
export class PackageFailure extends Error {
  override readonly name = 'PackageFailure';
  /** Whether the failure is not caused by the packages, so that the next attempt may succeed. */
  readonly isPassing: boolean;

  constructor(message: string, isPassing = false) {
    super(message);
    this.isPassing = isPassing;
  }
}
