/** The files with which Kubernetes and Ray run kernel nodes. No cluster runs them here: they are compared with schemas and with the code. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { SETTINGS } from '#src/base/config/settings.ts';
import { noRay } from '#test/support/ray-cluster.ts';
import { pythonOfTests } from '#test/support/server-fixture.ts';

/** A document of YAML. Tests look into it with the paths that they expect. */
// biome-ignore lint/suspicious/noExplicitAny: the assertions are the check of its shape
type Document = any;

function python(program: string, script: string, ...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(program, ['-c', script, ...args], { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  return stdout;
}

/** Returns the documents of a file by their kind. */
function read(path: string): Readonly<Record<string, Document>> {
  const { TROUPE_PYTHON = '.venv/bin/python' } = pythonOfTests();
  const script = 'import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))';
  const documents = JSON.parse(python(TROUPE_PYTHON, script, path)) as readonly Document[];
  return Object.fromEntries(documents.map((document) => [document.kind, document]));
}

const KUBERNETES = 'deploy/kubernetes/nodes.yaml';
const RAY_CLUSTER = 'deploy/ray/raycluster.yaml';

test('the manifests of Kubernetes and the cluster file of Ray match the official schemas', {
  skip: noRay,
}, () => {
  const bin = join(process.env.TROUPE_TEST_RAY ?? '', 'bin');
  const { status, stderr } = spawnSync(
    join(bin, 'kubernetes-validate'),
    ['--strict', '--kubernetes-version', '1.37', KUBERNETES],
    { encoding: 'utf8' },
  );
  assert.equal(status, 0, stderr);
  const script = `import sys, yaml
from ray.autoscaler._private.util import prepare_config, validate_config
validate_config(prepare_config(yaml.safe_load(open(sys.argv[1]))))`;
  python(join(bin, 'python'), script, 'deploy/ray/cluster.yaml');
});

test('pods run one node for each machine, with the secret and the folder of the workspaces, and confine kernels as other nodes do', () => {
  const { Deployment, PersistentVolumeClaim } = read(KUBERNETES);
  const { spec: pod, metadata } = Deployment.spec.template;
  const [rule] = pod.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution;
  assert.deepEqual(
    [rule.topologyKey, rule.labelSelector.matchLabels],
    ['kubernetes.io/hostname', metadata.labels],
  );
  assert.deepEqual(Deployment.spec.selector.matchLabels, metadata.labels);
  const [container] = pod.containers;
  assert.deepEqual(container.command, ['troupe', 'node', 'join']);
  assert.deepEqual(container.args.slice(1), ['--secret-file', '/run/secrets/troupe/secret']);
  assert.match(container.args[0], new RegExp(`^\\S+:${SETTINGS.nodesPort.default}$`));
  const mounts = new Map(container.volumeMounts.map((one: Document) => [one.mountPath, one.name]));
  const volumes = new Map(pod.volumes.map((one: Document) => [one.name, one]));
  const volumeAt = (path: string): Document => volumes.get(mounts.get(path));
  assert.equal(
    volumeAt('/var/lib/troupe/workspaces').persistentVolumeClaim.claimName,
    PersistentVolumeClaim.metadata.name,
  );
  assert.equal(volumeAt('/run/secrets/troupe').secret.defaultMode & 0o007, 0);
  const env = new Map(container.env.map((one: Document) => [one.name, one.value]));
  assert(volumeAt(String(env.get('TROUPE_NODE_DIR'))).emptyDir !== undefined);
  assert.equal(env.get('TROUPE_NODE_KERNEL_NETWORK'), 'none');
});

test('no connection reaches the nodes, and nodes reach only the port for nodes and the name service', () => {
  const { Deployment, NetworkPolicy } = read(KUBERNETES);
  const { spec } = NetworkPolicy;
  assert.deepEqual(spec.podSelector.matchLabels, Deployment.spec.template.metadata.labels);
  assert.deepEqual([spec.policyTypes, spec.ingress], [['Ingress', 'Egress'], []]);
  const [server, names] = spec.egress;
  assert.equal(spec.egress.length, 2);
  assert.deepEqual(server.ports, [{ protocol: 'TCP', port: Number(SETTINGS.nodesPort.default) }]);
  assert.deepEqual(
    names.ports.map((one: Document) => one.port),
    [53, 53],
  );
  assert(server.to.length > 0 && names.to.length > 0, 'without targets every machine would be meant');
});

test('pods of nodes have no privileges, no token of the cluster, and the rights that confinement needs', () => {
  const pods = [
    read(KUBERNETES).Deployment.spec.template.spec,
    read(RAY_CLUSTER).RayCluster.spec.workerGroupSpecs[0].template.spec,
  ];
  for (const pod of pods) {
    assert.equal(pod.automountServiceAccountToken, false);
    assert.equal(pod.hostUsers, false);
    const { runAsNonRoot, runAsUser, seccompProfile, appArmorProfile } = pod.securityContext;
    assert.deepEqual([runAsNonRoot, runAsUser], [true, 10_001]);
    assert.deepEqual([seccompProfile.type, appArmorProfile.type], ['Localhost', 'Unconfined']);
    const [container] = pod.containers;
    const { allowPrivilegeEscalation, capabilities, procMount } = container.securityContext;
    assert.deepEqual(
      [allowPrivilegeEscalation, capabilities, procMount],
      [false, { drop: ['ALL'] }, 'Unmasked'],
    );
    assert(
      container.env.some(
        (one: Document) => one.name === 'TROUPE_KERNEL_CONFINEMENT' && one.value === 'require',
      ),
    );
  }
});

test('Ray clusters have a token, a state that outlives the head, and machines that offer troupe_host', () => {
  const { spec } = read(RAY_CLUSTER).RayCluster;
  assert.deepEqual([spec.authOptions.mode, spec.headGroupSpec.rayStartParams['num-cpus']], ['token', '0']);
  assert.match(spec.gcsFaultToleranceOptions.redisAddress, /:6379$/);
  const [group] = spec.workerGroupSpecs;
  assert.deepEqual(JSON.parse(JSON.parse(group.rayStartParams.resources.replaceAll("'", ''))), {
    troupe_host: 1,
  });
  const local = readFileSync('deploy/ray/cluster.yaml', 'utf8');
  const count = (text: string) => local.split(text).length - 1;
  assert.equal(count('RAY_AUTH_MODE=token'), count('ray start'));
  assert.match(local, /RAY_REDIS_ADDRESS=/);
  assert.match(local, /--resources='\{"troupe_host": 1\}'/);
});

test('all files have the same version of Ray', () => {
  const texts = ['.ci/run', 'deploy/ray/Containerfile', RAY_CLUSTER, 'docs/nodes.md'];
  const versions = texts.map(
    (path) => /(?:ray\[default\]==|rayVersion: |Ray )(\d+\.\d+\.\d+)/.exec(readFileSync(path, 'utf8'))?.[1],
  );
  assert.deepEqual([...new Set(versions)], ['2.60.0']);
});
