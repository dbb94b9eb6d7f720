import { boolean, httpUrl, integer } from './kinds.ts';
import { setting } from './setting.ts';

/** Packages that notebooks ask for. In the order of the documentation. */
export const PACKAGE_SETTINGS = {
  packages: setting({
    env: 'TROUPE_PACKAGES',
    kind: boolean,
    default: 'true',
    description:
      'Whether the server installs the packages that the script metadata of a notebook names (PEP 723), and the packages that are added to a workspace. With false, notebooks have only the packages in the Python environment of kernels.',
  }),
  packagesBuild: setting({
    env: 'TROUPE_PACKAGES_BUILD',
    kind: boolean,
    default: 'true',
    description:
      'Whether packages without a wheel for this Python are built from their sources. A build runs code of the package, confined like a kernel and without network. So the build reaches less than a notebook that imports the package. With false, packages without a wheel are refused by name.',
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
      'Most disk space that all installed packages take together. When more is needed, packages that no session uses are removed, least recently used first. An installation fails when the packages in use leave too little room. 0: no limit.',
  }),
} as const;
