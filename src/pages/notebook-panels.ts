import type { AuditTrail } from '#src/audit/audit-trail.ts';
import type { OpenFile } from '#src/files/workspace-files.ts';
import type { WorkspacePackages } from '#src/packages/workspace-packages.ts';
import { createFile, FILE_PANEL, type FilePanel, type NewFile, openFile } from './file-panel.ts';
import { PACKAGE_PANEL } from './package-panel.ts';
import {
  admit,
  answerPanel,
  checkedShape,
  type PanelPorts,
  type PanelRequest,
  type PanelSessions,
} from './panel.ts';

export interface NotebookPanelsOptions {
  readonly sessions: PanelSessions;
  readonly packages: WorkspacePackages;
  readonly files: FilePanel;
  readonly audit: Pick<AuditTrail, 'note'>;
}

/** The panels of notebooks' pages that show and change things of the workspace. */
export class NotebookPanels {
  readonly #options: NotebookPanelsOptions;
  readonly #ports: PanelPorts;

  constructor(options: NotebookPanelsOptions) {
    const { sessions, audit } = options;
    this.#options = options;
    this.#ports = { sessions, note: (...noted) => audit.note(...noted) };
  }

  /** Resolves with the JSON of the answer to a request of the panel for packages. Rejects as `answerPanel` does. */
  packages(request: PanelRequest): Promise<unknown> {
    return answerPanel(PACKAGE_PANEL, this.#options.packages, this.#ports, request);
  }

  /** Answers a request of the files panel: resolves with JSON. Rejects as `answerPanel` does. */
  files(request: PanelRequest): Promise<unknown> {
    return answerPanel(FILE_PANEL, this.#options.files, this.#ports, request);
  }

  /** Opens a file for a download. Rejects as `answerPanel` does, and as the files of the workspace do. */
  download(
    request: Omit<PanelRequest, 'method' | 'path' | 'body'>,
    path: string,
  ): Promise<{ readonly name: string; readonly file: OpenFile }> {
    return openFile(this.#options.files, admit(this.#ports, request, 'view'), path);
  }

  /** Creates a file or a folder. `read` is called once the page is known to have the right to it. Rejects as `answerPanel` does. */
  async createFile(
    request: Omit<PanelRequest, 'method' | 'path' | 'body'>,
    read: () => Promise<NewFile>,
  ): Promise<unknown> {
    const call = admit(this.#ports, request, 'edit');
    return checkedShape(async () => createFile(this.#options.files, call, await read()));
  }
}
