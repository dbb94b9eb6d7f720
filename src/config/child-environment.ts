/** Names that a child process may inherit; whatever else the server's environment holds may be a secret. */
const INHERITED =
  /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR|TERM|LD_LIBRARY_PATH|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|(https?|no|all)_proxy|(HTTPS?|NO|ALL)_PROXY|CUDA_[A-Z_]+|NVIDIA_[A-Z_]+|(OMP|OPENBLAS|MKL)_NUM_THREADS|XDG_(CACHE|CONFIG|DATA)_HOME|XDG_RUNTIME_DIR)$/;

/** The environment for processes that run other people's code: what programs need to work, and no secret of ours. */
export function childEnvironment(
  env: Readonly<Record<string, string | undefined>> = process.env,
): Record<string, string> {
  const inherited: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && INHERITED.test(name) && !/:\/\/[^/@\s]*@/.test(value)) inherited[name] = value;
  }
  return inherited;
}
