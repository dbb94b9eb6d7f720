/**
 * Notebooks that are being created. Large notebooks are written in slices, and lists are in the order of ids. If a notebook were
 * stored after another one with a greater id, a reader that has already read that page would miss the notebook.
 */

import { atOnce, inSlices } from '#src/base/async/slices.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { NotebookDocument } from './document.ts';
import { type EncodedNotebook, encodeNotebook } from './notebook-encoding.ts';

/**
 * How often a large notebook is encoded with another id because other notebooks were created meanwhile. After that, the notebook
 * is written at once.
 */
const MAX_TRIES = 3;

export class NewNotebooks {
  readonly #inSlices = new Set<{ workspaceId: WorkspaceId; id: string; isOvertaken: boolean }>();

  /**
   * Encodes the result of `make`, which has a new id each time, and calls `put`. When `put` is called, the workspace has no
   * notebook with a greater id.
   */
  async create(
    workspaceId: WorkspaceId,
    isSmall: boolean,
    make: () => NotebookDocument,
    put: (encoded: EncodedNotebook) => void,
  ): Promise<EncodedNotebook> {
    for (let tries = 1; ; tries++) {
      const document = make();
      const isAtOnce = isSmall || tries === MAX_TRIES;
      const encoded = isAtOnce ? atOnce(encodeNew(document)) : await this.#encode(workspaceId, document);
      if (encoded === undefined) continue;
      put(encoded);
      for (const other of this.#inSlices)
        other.isOvertaken ||= other.workspaceId === workspaceId && other.id < document.id;
      return encoded;
    }
  }

  /** Resolves with undefined when a notebook with a greater id was stored in the meantime. */
  async #encode(workspaceId: WorkspaceId, document: NotebookDocument): Promise<EncodedNotebook | undefined> {
    const creation = { workspaceId, id: document.id, isOvertaken: false };
    this.#inSlices.add(creation);
    try {
      const encoded = await inSlices(encodeNew(document), workspaceId);
      return creation.isOvertaken ? undefined : encoded;
    } finally {
      this.#inSlices.delete(creation);
    }
  }
}

/** The first version of a notebook begins together with the notebook. */
function encodeNew(document: NotebookDocument): Generator<undefined, EncodedNotebook> {
  return encodeNotebook(document, Date.parse(document.createdAt));
}
