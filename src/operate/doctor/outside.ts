/**
 * Checks of everything outside of the data directory that settings name: the socket for proxies, the port of kernel
 * nodes, the secret for the identity provider, and the folder of the backups. A mistake in one of the first three
 * keeps the server from starting.
 */
import { accessSync, constants, existsSync, lstatSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Config } from '#src/base/config/config.ts';
import { systemFailure } from '#src/base/errors/operator-error.ts';
import { explainListening, probeListening } from '#src/base/net/listen-failure.ts';
import { groupIdOf } from '#src/base/os/group.ts';
import { DataDirectory } from '#storage/disk/data-directory.ts';
import { firstExisting } from './data.ts';
import { type Finding, fine, problem, warning } from './finding.ts';

/** Returns findings about those of the settings that are set. */
export async function checkOutside(config: Config): Promise<Finding[]> {
  const isRunning = existsSync(config.dataDir) && (await DataDirectory.isClaimed(config.dataDir));
  const found = [
    await checkProxySocket(config),
    isRunning ? undefined : await checkNodesPort(config),
    checkProviderSecret(config),
    checkBackups(config),
  ];
  return found.filter((finding) => finding !== undefined);
}

async function checkProxySocket({
  listenSocket: path,
  listenSocketGroup: group,
}: Config): Promise<Finding | undefined> {
  const check = 'proxy socket';
  if (path === undefined) return undefined;
  if (group !== undefined && !/^\d+$/.test(group) && (await groupIdOf(group)) === undefined)
    return problem(
      check,
      `the group ${group} (TROUPE_LISTEN_SOCKET_GROUP) does not exist`,
      `Create it (groupadd --system ${group}), and add the user of the proxy to it.`,
    );
  const file = lstatSync(path, { throwIfNoEntry: false });
  if (file?.isSocket() === true) return fine(check, path);
  if (file !== undefined)
    return problem(
      check,
      `${path} (TROUPE_LISTEN_SOCKET) is not a socket`,
      'Set TROUPE_LISTEN_SOCKET to another path.',
    );
  const folder = dirname(path);
  if (existsSync(folder)) return fine(check, `${path} will be created at the start`);
  return warning(
    check,
    `${folder}, the folder of TROUPE_LISTEN_SOCKET, does not exist`,
    'The systemd unit in deploy/ makes the folder at the start (RuntimeDirectory). Without a unit, make it for the user of the server.',
  );
}

async function checkNodesPort({
  kernelNodes,
  nodesHost: host,
  nodesPort: port,
}: Config): Promise<Finding | undefined> {
  const check = 'port of kernel nodes';
  if (kernelNodes === 'none' || port === 0) return undefined;
  const code = await probeListening(host, port);
  if (code === undefined) return fine(check, `${host}:${port} is free`);
  const { why, advice } = explainListening(code, { host, port });
  return problem(
    check,
    `the server cannot listen on ${host}:${port}: ${why}`,
    advice.replaceAll(/TROUPE_(HOST|PORT)/g, 'TROUPE_NODES_$1'),
  );
}

function checkProviderSecret({ oidcIssuer, oidcClientSecretFile: file }: Config): Finding | undefined {
  const check = 'identity provider';
  if (oidcIssuer === undefined || file === undefined) return undefined;
  return attempt(check, `the secret of the client in ${file} cannot be read`, () =>
    readFileSync(file, 'utf8').trim() === ''
      ? problem(check, `${file} is empty`, 'Put the secret of the client at the identity provider into it.')
      : fine(check, `${file} has the secret of the client`),
  );
}

function checkBackups({ backupDir: folder }: Config): Finding | undefined {
  const check = 'backups';
  if (folder === undefined) return undefined;
  const place = firstExisting(folder);
  return attempt(check, `no backup can be made in ${folder}`, () => {
    accessSync(`${place}/.`, constants.W_OK | constants.X_OK); // with `/.` this also fails for a file
    return fine(check, place === folder ? folder : `${folder} will be created`);
  });
}

function attempt(check: string, failure: string, examine: () => Finding): Finding {
  try {
    return examine();
  } catch (error) {
    const { problem: detail, advice } = systemFailure(failure, error);
    return problem(check, detail.replace(/\.$/, ''), advice);
  }
}
