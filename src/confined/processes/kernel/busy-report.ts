/**
 * Reports whether a kernel is busy: at once when it begins to work, and some time after its work has ended. So work that follows
 * soon, such as the next cell's, causes no report, and a kernel with many short commands causes few.
 */

const REST_MS = 250;

export class BusyReport implements Disposable {
  readonly #report: (isBusy: boolean) => void;
  #isWorking = false;
  #isReported = false;
  #rest: NodeJS.Timeout | undefined;

  constructor(report: (isBusy: boolean) => void) {
    this.#report = report;
  }

  begin(): void {
    this.#isWorking = true;
    if (this.#isReported) return;
    this.#isReported = true;
    this.#report(true);
  }

  end(): void {
    this.#isWorking = false;
    if (!this.#isReported) return;
    if (this.#rest === undefined) this.#rest = setTimeout(() => this.#onRested(), REST_MS).unref();
    else this.#rest.refresh();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#rest);
  }

  #onRested(): void {
    if (this.#isWorking) return;
    this.#isReported = false;
    this.#report(false);
  }
}
