import { join } from 'node:path';
import { boolean, choice, integer, paths, program } from './kinds.ts';
import { optional, setting } from './setting.ts';

/** Kernels: the interpreter, limits and confinement. In the order of the documentation. */
export const KERNEL_SETTINGS = {
  python: setting({
    env: 'TROUPE_PYTHON',
    kind: program,
    default: {
      shown: '<installation>/.venv/bin/python',
      from: (base) => join(base.packageRoot, '.venv', 'bin', 'python'),
    },
    description: 'Python interpreter that runs the kernels. It needs the marimo version of this release.',
  }),
  preload: setting({
    env: 'TROUPE_PRELOAD',
    kind: boolean,
    default: 'true',
    description:
      'Whether pandas and other common libraries are loaded once for all kernels, so that notebooks import them in milliseconds.',
  }),
  kernelMemoryMb: setting({
    env: 'TROUPE_KERNEL_MEMORY_MB',
    kind: integer(0, 16_777_216),
    default: '4096',
    unit: 'MiB',
    description:
      'Most memory of one kernel: all its processes together, the files in its /tmp and /dev/shm, and the engines that read its database files. A kernel that uses more is killed: at once where the server may make control groups, elsewhere within some two seconds. Without control groups, each process may also reserve no more than this. With less than 1024, common libraries may not load; 0 means no limit.',
  }),
  kernelProcesses: setting({
    env: 'TROUPE_KERNEL_PROCESSES',
    kind: integer(0, 4_000_000),
    default: '1024',
    description:
      'Most processes and threads of one kernel; 0 means no limit. The limit needs a system on which kernels have namespaces of their own.',
  }),
  kernelOpenFiles: setting({
    env: 'TROUPE_KERNEL_OPEN_FILES',
    kind: integer(0, 1_048_576),
    default: '4096',
    description: 'Most open files of each process of a kernel; 0 means the limit of the server.',
  }),
  kernelFileMb: setting({
    env: 'TROUPE_KERNEL_FILE_MB',
    kind: integer(0, 16_777_216),
    default: '10240',
    unit: 'MiB',
    description: 'Largest file that a kernel may write; 0 means no limit.',
  }),
  kernelCpuS: setting({
    env: 'TROUPE_KERNEL_CPU_S',
    kind: integer(0, 4_000_000),
    default: '0',
    unit: 's',
    description: 'Processor time after which a process of a kernel is ended; 0 means no limit.',
  }),
  kernelNice: setting({
    env: 'TROUPE_KERNEL_NICE',
    kind: integer(0, 19),
    default: '5',
    description:
      'How far kernels give way to the server when processor time is scarce (as in nice(1)). Where Linux divides processor time among sessions, a program that starts another session does not give way. Where control groups divide processor time among workspaces, the setting has no effect: the server has the share of ten workspaces.',
  }),
  kernelReadPaths: setting({
    env: 'TROUPE_KERNEL_READ_PATHS',
    kind: paths,
    default: 'none',
    description:
      'Paths that kernels may read, in addition to the system, the Python environment and the files of their workspace.',
  }),
  kernelWritePaths: setting({
    env: 'TROUPE_KERNEL_WRITE_PATHS',
    kind: paths,
    default: 'none',
    description: 'Paths that kernels may read and write, in addition to the files of their workspace.',
  }),
  kernelConfinement: setting({
    env: 'TROUPE_KERNEL_CONFINEMENT',
    kind: choice('auto', 'require', 'off'),
    default: 'auto',
    description:
      'How kernels are isolated from the server and from each other. `auto` uses every layer that the system supports, and logs the missing layers at the start. With `require`, the server starts only where no layer is missing. `off` isolates nothing.',
  }),
  kernelNetwork: setting({
    env: 'TROUPE_KERNEL_NETWORK',
    kind: choice('host', 'none'),
    default: 'host',
    description:
      '`host` gives notebook code the network of this machine, `none` only a separate loopback interface. Datasources work in both cases.',
  }),
  kernelUid: optional({
    env: 'TROUPE_KERNEL_UID',
    kind: integer(1, 4_294_967_294),
    description:
      'User id of the kernels. Only a server that is started as root can give kernels another user id than its own.',
  }),
} as const;
