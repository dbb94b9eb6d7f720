/**
 * The error that Python raises for a missing module, and the one that marimo raises for packages of
 * its own elements.
 */
const NO_MODULE = /^No module named '([\w.]+)'|^([\w.]+) is required /;

/** Frequently used packages whose modules have another name. */
const PACKAGE_OF: Readonly<Record<string, string>> = {
  bs4: 'beautifulsoup4',
  cv2: 'opencv-python-headless',
  dateutil: 'python-dateutil',
  docx: 'python-docx',
  dotenv: 'python-dotenv',
  fitz: 'pymupdf',
  github: 'pygithub',
  jose: 'python-jose',
  jwt: 'pyjwt',
  mpl_toolkits: 'matplotlib',
  PIL: 'pillow',
  pptx: 'python-pptx',
  psycopg2: 'psycopg2-binary',
  serial: 'pyserial',
  skimage: 'scikit-image',
  sklearn: 'scikit-learn',
  umap: 'umap-learn',
  yaml: 'pyyaml',
};

/** The packages of a notebook's workspace. */
export interface PackageRules {
  /** Whether this server installs packages. */
  readonly mayInstall: boolean;
  /** The requirements of the workspace, by normal name. */
  readonly has: (name: string) => boolean;
}

/** Returns advice for an error about a missing module, as a sentence; empty for all other errors. */
export function adviceOnMissingModule(type: string, text: string, { mayInstall, has }: PackageRules): string {
  const [, missing, needed] = type === 'ModuleNotFoundError' ? (NO_MODULE.exec(text) ?? []) : [];
  const module = missing ?? needed;
  if (module === undefined) return '';
  if (!mayInstall)
    return 'This server installs no packages for notebooks: its operator has turned TROUPE_PACKAGES off.';
  const [top = module] = module.split('.');
  const name = PACKAGE_OF[top] ?? top.toLowerCase().replaceAll('_', '-');
  if (has(name))
    return `The workspace has the package ${name} since this kernel was started: close the session and open it again.`;
  return (
    `To add its package, run \`troupe packages add ${name}\` if that is its name, or name it under dependencies in the notebook's ` +
    'script metadata (PEP 723); then close the session and open it again.'
  );
}
