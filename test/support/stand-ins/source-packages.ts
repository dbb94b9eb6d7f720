/** Packages of sources for the index of tests, the backend that builds them, and a build that attacks. */
import type { TestPackage } from './package-index.ts';

/** A build backend. It runs `setup.py`, which may set `text`, and makes a wheel with a module that has this text. */
const BACKEND = `
import base64, hashlib, os, zipfile
def get_requires_for_build_wheel(settings=None):
    return ["punctuation"]
def build_wheel(folder, settings=None, metadata=None):
    import punctuation
    with open("PKG-INFO") as file:
        name, version = file.read().split()
    found = {"text": "built", "folder": folder, "name": name, "version": version}
    with open("setup.py") as file:
        exec(file.read(), found)
    name, version = found["name"], found["version"]
    info = f"{name}-{version}.dist-info"
    requires = "".join(f"Requires-Dist: {one}\\n" for one in found.get("requires", []))
    files = {
        f"{name}.py": f"text = {found['text']!r}",
        f"{info}/METADATA": f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n{requires}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    for path in found.get("added", []):
        with open(path, "rb") as file:
            files[os.path.basename(path)] = file.read()
    files = {path: text if isinstance(text, bytes) else text.encode() for path, text in files.items()}
    digest = lambda data: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    files[f"{info}/RECORD"] = "".join(f"{n},sha256={digest(d)},{len(d)}\\n" for n, d in files.items()) + f"{info}/RECORD,,\\n"
    wheel = f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(found["folder"], wheel), "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return wheel
`;
const PROJECT = '[build-system]\nrequires = ["making"]\nbuild-backend = "making"\n';

/** Returns a package without a wheel. `setup` is Python that its build runs. */
export function sourcesOf(name: string, version: string, setup: string, project = PROJECT): TestPackage {
  const sources = { 'PKG-INFO': `${name} ${version}`, 'setup.py': setup, 'pyproject.toml': project };
  return { name, version, code: '', sources };
}

/** Attempts of a build, each with the outcome that it prints; `{…}` are replaced by the test. */
const ATTEMPTS = `
import errno, json, os, resource, signal, socket, sys
def attempt(act):
    try:
        return "done: " + repr(act())[:60]
    except Exception as error:
        return type(error).__name__
def reach(port):
    socket.create_connection(("127.0.0.1", port), timeout=5).close()
def fork():
    children = []
    try:
        while len(children) < 1500:
            child = os.fork()
            if child == 0:
                signal.pause()
            children.append(child)
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
def write(path):
    with open(path, "w") as file:
        file.write("x")
cache = os.path.join(os.path.dirname(os.path.dirname(os.environ["VIRTUAL_ENV"])), "..", "cache")
text = json.dumps({
    "passwords": attempt(lambda: open("/etc/shadow").read()),
    "store": attempt(lambda: [one for one in os.listdir("{DATA}") if one != "packages"][0]),
    "sets": attempt(lambda: os.listdir("{DATA}/packages/.workshop/cache")),
    "cache": attempt(lambda: write(os.path.join(cache, "written"))),
    "environment": attempt(lambda: write(os.path.join(os.environ["VIRTUAL_ENV"], "written"))),
    "elsewhere": attempt(lambda: write("/var/tmp/written-by-a-build")),
    "index": attempt(lambda: reach({INDEX})),
    "other": attempt(lambda: reach({OTHER})),
    "server": attempt(lambda: os.kill({SERVER}, 0)),
    "fork": attempt(fork),
    "proxy": repr([name for name in os.environ if "proxy" in name.lower()]),
})
`;

/** The packages that every build needs. */
export const BUILD_TOOLS: readonly TestPackage[] = [
  { name: 'making', version: '1.0', code: BACKEND },
  { name: 'punctuation', version: '1.0', code: 'mark = "!"' },
];

/** Returns a package of one module in C, whose build calls the compiler as setuptools does. */
export function compiledSources(name: string): TestPackage {
  const setup = `
import os, subprocess, sysconfig
library = os.path.abspath("_${name}" + sysconfig.get_config_var("EXT_SUFFIX"))
include = sysconfig.get_path("include")
compiler = sysconfig.get_config_var("CC").split()[0]
subprocess.run([compiler, "-shared", "-fPIC", f"-I{include}", "module.c", "-o", library], check=True)
added = [library]
`;
  const { sources, ...rest } = sourcesOf(name, '1.0', setup);
  const module = `
#include <Python.h>
static struct PyModuleDef module = { PyModuleDef_HEAD_INIT, "_${name}" };
PyMODINIT_FUNC PyInit__${name}(void) {
  PyObject *made = PyModule_Create(&module);
  PyModule_AddStringConstant(made, "text", "compiled");
  return made;
}
`;
  return { ...rest, sources: { ...sources, 'module.c': module } };
}

/** Places that the build `hostile` tries to reach. */
export interface AttackedPlaces {
  readonly dataDir: string;
  /** Ports on loopback of the index and of another listener. */
  readonly index: string;
  readonly other: string;
  readonly server: number;
}

/** Returns a package whose build tries to reach these places. The text of its module is JSON: the outcome of each attempt. */
export function hostileSources(
  { dataDir, index, other, server }: AttackedPlaces,
  name = 'hostile',
): TestPackage {
  const places = { DATA: dataDir, INDEX: index, OTHER: other, SERVER: String(server) };
  const setup = Object.entries(places).reduce(
    (text, [place, value]) => text.replaceAll(`{${place}}`, value),
    ATTEMPTS,
  );
  return sourcesOf(name, '1.0', setup);
}
