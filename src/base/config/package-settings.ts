import { boolean, httpUrl, integer } from './kinds.ts';
import { setting } from './setting.ts';

/** Packages that notebooks ask for. In the order of the documentation. */
export const PACKAGE_SETTINGS = {
  packages: setting({
    env: 'TROUPE_PACKAGES',
    kind: boolean,
    default: 'true',
    description:
      'Whether the packages are installed that a notebook asks for in its script metadata (PEP 723), and those that are added to a workspace. Otherwise notebooks have only the packages in the Python environment of kernels.',
  }),
  packagesBuild: setting({
    env: 'TROUPE_PACKAGES_BUILD',
    kind: boolean,
    default: 'true',
    description:
      'Whether packages without a wheel for this Python are built from their sources. A build runs code of the package, confined like a kernel and without network, so it reaches less than the same code does when a notebook imports the package. With false, such packages are refused by name.',
  }),
  packagesBuildTimeoutS: setting({
    env: 'TROUPE_PACKAGES_BUILD_TIMEOUT_S',
    kind: integer(1, 86_400),
    default: '900',
    unit: 's',
    description: 'The most time that the build of one package from its sources may take.',
  }),
  packageIndex: setting({
    env: 'TROUPE_PACKAGE_INDEX',
    kind: httpUrl,
    default: 'https://pypi.org/simple',
    description:
      'The index from which packages are installed (PEP 503). The index and the files that it names must be allowed by the egress rules. An index that asks for a password is not supported: use a mirror that knows the password, such as devpi.',
  }),
  packagesMaxMb: setting({
    env: 'TROUPE_PACKAGES_MAX_MB',
    kind: integer(0, 16_777_216),
    default: '20480',
    unit: 'MiB',
    description:
      'Most disk space that all installed packages take together. Beyond it, packages that no session uses are removed, least recently used first; an installation fails when the packages in use leave no room for it. 0: no limit.',
  }),
} as const;
