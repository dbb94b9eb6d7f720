/** The messages of a server for people, which nobody reads in a simulation. */
export function announce(): void {}

export function sayWhereKernelsRun(): void {}

export function say(): void {}
