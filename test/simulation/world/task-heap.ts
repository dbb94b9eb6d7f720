import type { Task } from './world.ts';

/** Tasks by their time, and tasks of one time in the order in which they were added. */
export class TaskHeap {
  #tasks: Task[] = [];

  get first(): Task | undefined {
    return this.#tasks[0];
  }

  push(task: Task): void {
    const tasks = this.#tasks;
    let at = tasks.push(task) - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (isBefore(tasks[above]!, task)) break;
      tasks[at] = tasks[above]!;
      at = above;
    }
    tasks[at] = task;
  }

  take(): Task | undefined {
    const tasks = this.#tasks;
    const [first] = tasks;
    const last = tasks.pop();
    if (first !== undefined && last !== undefined && first !== last) this.#sink(last);
    return first;
  }

  removeWhere(isUnwanted: (task: Task) => boolean): void {
    // A sorted list is a heap.
    this.#tasks = this.#tasks.filter((task) => !isUnwanted(task)).sort((a, b) => (isBefore(a, b) ? -1 : 1));
  }

  #sink(task: Task): void {
    const tasks = this.#tasks;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= tasks.length) break;
      if (below + 1 < tasks.length && isBefore(tasks[below + 1]!, tasks[below]!)) below++;
      if (isBefore(task, tasks[below]!)) break;
      tasks[at] = tasks[below]!;
      at = below;
    }
    tasks[at] = task;
  }
}

function isBefore(a: Task, b: Task): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.number < b.number);
}
