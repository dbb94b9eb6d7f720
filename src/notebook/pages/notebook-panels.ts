import { FairSemaphore } from '#src/base/async/fair-semaphore.ts';
import { type ElementFiles, pageHasLeft } from '#src/workspace/files/element-files.ts';
import type { OpenFile } from '#src/workspace/files/workspace-files.ts';
import type { WorkspacePackages } from '#src/workspace/packages/workspace-packages.ts';
import { PUBLIC_FOLDER } from '../saved/public-files.ts';
import { createFile, FILE_PANEL, type FilePanel, type NewFile, openFile } from './file-panel.ts';
import { PACKAGE_PANEL } from './package-panel.ts';
import { admit, answerPanel, checkedShape, type PanelPorts, type PanelRequest } from './panel.ts';

export interface NotebookPanelsOptions extends PanelPorts {
  readonly packages: WorkspacePackages;
  readonly files: FilePanel;
  readonly elementFiles: Pick<ElementFiles, 'store'>;
}

/**
 * The requests for files that one worker carries out at once. A search reads many names, in the thread pool that all workspaces
 * share. So waiting workspaces take turns, and so do the waiting members of a workspace.
 */
const OF_WORKSPACE = { width: 8, widthOfKey: 2, queueOfKey: 64 };
const OF_MEMBER = {
  width: Number.POSITIVE_INFINITY,
  widthOfKey: 2,
  queueOfKey: 32,
  refusal: 'You have too many requests for files at once. Try again in a moment.',
};

/**
 * How many files the pages of one member send to elements at once: one page sends five. Some more files wait, with a MiB of each
 * in memory.
 */
const ELEMENT_FILES_OF_MEMBER = {
  width: Number.POSITIVE_INFINITY,
  widthOfKey: 5,
  queueOfKey: 15,
  refusal: 'You are sending too many files at once. Try again when some of them have arrived.',
};

/** The panels of notebooks' pages that show and change things of the workspace. */
export class NotebookPanels {
  readonly #options: NotebookPanelsOptions;
  readonly #ofWorkspaces = new FairSemaphore(OF_WORKSPACE);
  readonly #ofMembers = new FairSemaphore(OF_MEMBER);
  readonly #elementFiles = new FairSemaphore(ELEMENT_FILES_OF_MEMBER);

  constructor(options: NotebookPanelsOptions) {
    this.#options = options;
  }

  /** Resolves with the JSON of the answer to a request of the panel for packages. Rejects as `answerPanel` does. */
  packages(request: PanelRequest): Promise<unknown> {
    return answerPanel(PACKAGE_PANEL, this.#options.packages, this.#options, request);
  }

  /**
   * Answers a request of the files panel, once the workspace and the member have their turn: resolves with JSON. Rejects as
   * `answerPanel` does, and with `unavailable` when too many requests of either wait. A request whose page leaves waits no longer.
   */
  files(request: PanelRequest): Promise<unknown> {
    const { workspaceId, userId } = request.context.principal;
    const answer = () => answerPanel(FILE_PANEL, this.#options.files, this.#options, request);
    const { signal } = request;
    const inWorkspace = () => this.#ofWorkspaces.pass(workspaceId, answer, signal);
    return this.#ofMembers.pass(`${workspaceId}/${userId}`, inWorkspace, signal);
  }

  /** Opens a file for a download. Rejects as `answerPanel` does, and as the files of the workspace do. */
  download(
    request: Omit<PanelRequest, 'method' | 'path' | 'body'>,
    path: string,
  ): Promise<{ readonly name: string; readonly file: OpenFile }> {
    const call = admit(this.#options, request, 'view');
    return checkedShape(() => openFile(this.#options.files, call, path));
  }

  /** Opens a file of the folder `public`. Rejects as `download` does. */
  publicFile(
    request: Omit<PanelRequest, 'method' | 'path' | 'body'>,
    path: string,
  ): ReturnType<NotebookPanels['download']> {
    return this.download(request, `${PUBLIC_FOLDER}/${path}`);
  }

  /**
   * Creates a file or a folder. `read` is called once the page is known to have the right to create it. Rejects as `answerPanel`
   * does.
   */
  async createFile(
    request: Omit<PanelRequest, 'method' | 'path' | 'body'>,
    read: () => Promise<NewFile>,
  ): Promise<unknown> {
    const call = admit(this.#options, request, 'edit');
    return checkedShape(async () => createFile(this.#options.files, call, await read()));
  }

  /**
   * Stores a file for an element of the notebook, as it arrives, and resolves with its id. Rejects as `answerPanel` does, with
   * `unavailable` when too many files of the member wait, and as the files of the workspace do. Leaves nothing behind when it rejects.
   */
  storeElementFile(
    request: Omit<PanelRequest, 'method' | 'path' | 'body'>,
    content: AsyncIterable<Uint8Array>,
  ): Promise<string> {
    const requireOpen = () => admit(this.#options, request, 'interact');
    const { workspaceId, userId, notebookId, signal } = requireOpen();
    const owner = { workspaceId, sessionId: notebookId };
    const file = { content, signal, requireOpen };
    const store = () => this.#options.elementFiles.store(owner, file);
    return this.#elementFiles.pass(`${workspaceId}/${userId}`, store, signal).catch((error: unknown) => {
      throw signal.aborted ? pageHasLeft() : error;
    });
  }
}
