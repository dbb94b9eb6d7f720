/** What one kernel may use. Each null is no limit. */
export interface KernelLimits {
  /** In use by all of its processes together; without control groups also what each of them may reserve. */
  readonly memoryBytes: number | null;
  /** Processes and threads at once. Counted where kernels have namespaces of their own. */
  readonly processes: number | null;
  /** Of each of its processes. */
  readonly openFiles: number | null;
  /** Of each file that it writes. */
  readonly fileBytes: number | null;
  /** Processor time of each of its processes. */
  readonly cpuSeconds: number | null;
  /** How much processor time it leaves to others when there is too little: 0 to 19. */
  readonly nice: number;
}

export const NO_LIMITS: KernelLimits = {
  memoryBytes: null,
  processes: null,
  openFiles: null,
  fileBytes: null,
  cpuSeconds: null,
  nice: 0,
};

/** The settings that make a kernel's limits; 0 is no limit. */
export interface LimitSettings {
  readonly kernelMemoryMb: number;
  readonly kernelProcesses: number;
  readonly kernelOpenFiles: number;
  readonly kernelFileMb: number;
  readonly kernelCpuS: number;
  readonly kernelNice: number;
}

const MIB = 2 ** 20;

export function limitsOf(settings: LimitSettings): KernelLimits {
  const orNone = (value: number) => (value === 0 ? null : value);
  return {
    memoryBytes: orNone(settings.kernelMemoryMb * MIB),
    processes: orNone(settings.kernelProcesses),
    openFiles: orNone(settings.kernelOpenFiles),
    fileBytes: orNone(settings.kernelFileMb * MIB),
    cpuSeconds: orNone(settings.kernelCpuS),
    nice: settings.kernelNice,
  };
}

/** As a session's record shows them. */
export function shownLimits({ memoryBytes, processes, openFiles, fileBytes, cpuSeconds }: KernelLimits) {
  const inMib = (bytes: number | null) => (bytes === null ? null : bytes / MIB);
  return {
    memoryLimitMb: inMib(memoryBytes),
    processLimit: processes,
    openFileLimit: openFiles,
    fileSizeLimitMb: inMib(fileBytes),
    cpuLimitS: cpuSeconds,
  };
}

/** The rlimits of a kernel's process but for memory, by the names the kernel host knows them by. */
export function rlimitsOf(limits: KernelLimits): Record<string, number> {
  const { openFiles: NOFILE, fileBytes: FSIZE, cpuSeconds: CPU } = limits;
  const set = Object.entries({ NOFILE, FSIZE, CPU });
  return Object.fromEntries(set.filter((entry): entry is [string, number] => entry[1] !== null));
}

/** Which limit a signal may have come of, as the end of a sentence; empty when none. */
export function limitBehindSignal(signal: string, limits: KernelLimits): string {
  const { memoryBytes, fileBytes, cpuSeconds } = limits;
  if (signal === 'SIGXCPU' && cpuSeconds !== null)
    return `, because it reached its limit of ${cpuSeconds} s of processor time`;
  if (signal === 'SIGXFSZ' && fileBytes !== null)
    return `, because it reached its limit of ${fileBytes / MIB} MiB for one file`;
  // Native libraries abort when an allocation fails; Python itself raises MemoryError and lives on.
  if (signal === 'SIGABRT' && memoryBytes !== null)
    return reachedMemoryLimit(limits).replace('because', 'perhaps because');
  return '';
}

/** As the end of a sentence. */
export function reachedMemoryLimit({ memoryBytes }: KernelLimits): string {
  return `, because it reached its limit of ${Math.round((memoryBytes ?? 0) / MIB)} MiB of memory`;
}

/** Which limit an error that Python raised has come of, as a sentence; empty when none has. */
export function limitBehindError(type: string, text: string, limits: KernelLimits): string {
  const { memoryBytes, processes, openFiles, fileBytes } = limits;
  if (memoryBytes !== null && (type === 'MemoryError' || /MemoryError|out of memory|OutOfMemory/i.test(type)))
    return `The limit of memory is ${Math.round(memoryBytes / MIB)} MiB.`;
  if (processes !== null && (/can't start new thread/.test(text) || type === 'BlockingIOError'))
    return `The limit is ${processes} processes and threads for each kernel.`;
  if (openFiles !== null && /\[Errno 24\]/.test(text))
    return `The limit is ${openFiles} open files for each process of a kernel.`;
  if (fileBytes !== null && /\[Errno 27\]/.test(text))
    return `The limit is ${fileBytes / MIB} MiB for each file that a kernel writes.`;
  return '';
}
