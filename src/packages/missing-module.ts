const NO_MODULE = /^No module named '[\w.]+'/;

/** Returns what to do about an error that a module is missing, as a sentence; empty for all other errors. */
export function adviceOnMissingModule(type: string, text: string, mayInstall: boolean): string {
  if (type !== 'ModuleNotFoundError' || !NO_MODULE.test(text)) return '';
  return mayInstall
    ? "Name its package under dependencies in the notebook's script metadata (PEP 723), and open the notebook again."
    : 'This server installs no packages for notebooks; its operator decides that with TROUPE_PACKAGES.';
}
