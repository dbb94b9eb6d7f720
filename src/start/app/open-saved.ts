import type { AsyncDisposableStack } from '#src/base/async/async-disposable-stack.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { ConvertRequest } from '#src/confined/processes/children/convert.ts';
import { SyntaxJudge } from '#src/confined/processes/children/syntax-judge.ts';
import type { SecretStore } from '#src/datasource/keys/secret-store.ts';
import { notebookUrls } from '#src/http/routes/notebook-pages.ts';
import { NotebookFiles, parserPlaces } from '#src/notebook/saved/notebook-files.ts';
import { NotebookSecrets } from '#src/notebook/saved/notebook-secrets.ts';
import { SavedNotebooks } from '#src/notebook/saved/saved-notebooks.ts';
import type { Ground } from './ground.ts';
import type { Late } from './late-planes.ts';
import { workspaceFileReader } from './workspace-file-reader.ts';

/** The ground of saved notebooks, with the store of the secrets that they have. */
interface SavedGround extends Ground {
  readonly vault: SecretStore;
}

export type Saved = ReturnType<typeof openSaved>;

/** Opens the saved notebooks, their secrets and their files. */
export function openSaved(
  { config, store, vault, prerequisites: { directory, host } }: SavedGround,
  late: Late,
  stack: AsyncDisposableStack,
) {
  const parsers = parserPlaces();
  const syntax = stack.use(
    new SyntaxJudge(host, (codes, workspaceId) =>
      parsers.pass(workspaceId, () => host.checkSyntax(codes, directory.workspaceFilesPath(workspaceId))),
    ),
  );
  const notebooks = new SavedNotebooks(
    store,
    (...notebook) => late.planes.sessions.refuseWhileOpen(...notebook),
    (codes, workspaceId) => syntax.allParse(codes, workspaceId),
  );
  const secrets = new NotebookSecrets(store, vault, notebooks);
  const converter = {
    isUp: () => host.state === 'up',
    convert: (request: ConvertRequest, workspaceId: WorkspaceId) =>
      host.convert(request, directory.workspaceFilesPath(workspaceId)),
  };
  const files = new NotebookFiles(
    store,
    notebooks,
    (...copy) => secrets.copy(...copy),
    converter,
    parsers,
    workspaceFileReader(directory),
  );
  return { notebooks, secrets, files, urlOf: notebookUrls(config.publicUrl) };
}
