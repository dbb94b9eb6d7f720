/** The limits of one kernel. Null means no limit. */
export interface KernelLimits {
  /**
   * The memory that all processes of the kernel use together. Without control groups, it also
   * limits the memory that each of them may reserve.
   */
  readonly memoryBytes: number | null;
  /** The most processes and threads at once, if kernels have namespaces. */
  readonly processes: number | null;
  /** The limit of each of the kernel's processes. */
  readonly openFiles: number | null;
  /** The limit of each file that the kernel writes. */
  readonly fileBytes: number | null;
  /** The processor time of each of the kernel's processes. */
  readonly cpuSeconds: number | null;
  /**
   * The niceness of the kernel, from 0 to 19: how much it gives way to other processes when processor time is
   * short.
   */
  readonly nice: number;
}

export const NO_PROCESS_LIMITS: KernelLimits = {
  memoryBytes: null,
  processes: null,
  openFiles: null,
  fileBytes: null,
  cpuSeconds: null,
  nice: 0,
};

/** The settings from which a kernel's limits are made; 0 means no limit. */
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

/** Returns the limits as a session's record shows them. */
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

/** Returns the rlimits of a kernel's process except for memory, by the names that the kernel host uses. */
export function rlimitsOf(limits: KernelLimits): Record<string, number> {
  const { openFiles: NOFILE, fileBytes: FSIZE, cpuSeconds: CPU } = limits;
  const set = Object.entries({ NOFILE, FSIZE, CPU });
  return Object.fromEntries(set.filter((entry): entry is [string, number] => entry[1] !== null));
}

/** Returns which limit may have caused a signal, as the end of a sentence; empty when none has. */
export function limitBehindSignal(signal: string, limits: KernelLimits): string {
  const { memoryBytes, fileBytes, cpuSeconds } = limits;
  if (signal === 'SIGXCPU' && cpuSeconds !== null)
    return `, because it reached its limit of ${cpuSeconds} s of processor time`;
  if (signal === 'SIGXFSZ' && fileBytes !== null)
    return `, because it reached its limit of ${fileBytes / MIB} MiB for one file`;
  // Native libraries abort when an allocation fails. Python itself raises MemoryError and
  // continues.
  if (signal === 'SIGABRT' && memoryBytes !== null)
    return reachedMemoryLimit(limits).replace('because', 'perhaps because');
  return '';
}

/** Returns the limit of memory as the end of a sentence. */
export function reachedMemoryLimit({ memoryBytes }: KernelLimits): string {
  return `, because it reached its limit of ${Math.round((memoryBytes ?? 0) / MIB)} MiB of memory`;
}

/** Returns which limit has caused an error that Python raised, as a sentence; empty when none has. */
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
