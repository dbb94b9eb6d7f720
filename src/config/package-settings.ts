import { boolean, httpUrl, integer } from './kinds.ts';
import { setting } from './setting.ts';

/** Packages that notebooks ask for. In the order of the documentation. */
export const PACKAGE_SETTINGS = {
  packages: setting({
    env: 'TROUPE_PACKAGES',
    kind: boolean,
    default: 'true',
    description:
      'Whether the packages are installed that a notebook asks for in its script metadata (PEP 723), and those that are added to a workspace. Without, notebooks have the packages of the Python environment of kernels only.',
  }),
  packageIndex: setting({
    env: 'TROUPE_PACKAGE_INDEX',
    kind: httpUrl,
    default: 'https://pypi.org/simple',
    description:
      'The index from which packages are installed (PEP 503). It and the files that it names are reached as far as the egress rules allow. An index that asks for a password is not supported: use a mirror that knows the password, such as devpi.',
  }),
  packagesMaxMb: setting({
    env: 'TROUPE_PACKAGES_MAX_MB',
    kind: integer(0, 16_777_216),
    default: '20480',
    unit: 'MiB',
    description:
      'Most disk space that all installed packages take together. Beyond it, packages that no session uses are removed, least recently used first; an installation is broken off when the packages in use leave no room for it. 0: no limit.',
  }),
} as const;
