/**
 * The stored and served forms of a notebook: its JSON, its record, and its entry in lists. The forms of a large notebook are made
 * in slices.
 */

import { MAX_SIZE_AT_ONCE } from '#src/base/async/slices.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import { parseTrustedJson } from '#src/base/json/json-parse.ts';
import { isShortJson, writeJson } from '#src/base/json/json-write.ts';
import { shownMetadata } from '#src/base/metadata-filter.ts';
import { type EncodedRecord, encodeRecordOfParts } from '#storage/codec.ts';
import {
  type NotebookRecord,
  type NotebookSummaryRecord,
  notebookRecords,
  notebookSummaries,
} from '#storage/records/notebooks.ts';
import type { Transaction } from '#storage/transaction.ts';
import { jsonOfCells, MAX_BLOCK_CELLS } from './cells-json.ts';
import { type NotebookDocument, titleOf } from './document.ts';

const NO_BYTES = new Uint8Array();

/** A notebook with its stored and served forms. */
export interface EncodedNotebook {
  readonly document: NotebookDocument;
  readonly title: string | null;
  readonly versionSince: number;
  /** The notebook's JSON, which is a part of the record. */
  readonly json: Uint8Array;
  readonly record: EncodedRecord<NotebookRecord>;
}

export function putNotebook(
  tx: Transaction,
  workspaceId: WorkspaceId,
  { document, title, versionSince, record }: EncodedNotebook,
): void {
  tx.putEncoded(record, workspaceId, document.id);
  tx.put(notebookSummaries, { ...summaryOf(document, title), versionSince }, workspaceId, document.id);
}

/** `versionSince` is when the version of the notebook began, in milliseconds since 1970. */
export function* encodeNotebook(
  document: NotebookDocument,
  versionSince: number,
): Generator<undefined, EncodedNotebook> {
  const { serialization, updatedAt } = document;
  const title = titleOf(serialization);
  const isShort = serialization.cells.length <= MAX_BLOCK_CELLS && isShortJson(document, MAX_SIZE_AT_ONCE);
  const parts = isShort
    ? [Buffer.from(JSON.stringify({ ...document, title }))]
    : yield* writeJson({
        ...document,
        serialization: { ...serialization, cells: yield* jsonOfCells(serialization.cells) },
        title,
      });
  yield;
  const fields = { updatedAt, versionSince, document: NO_BYTES };
  const bytes = yield* encodeRecordOfParts(notebookRecords, fields, 'document', parts);
  let length = 0;
  for (const { byteLength } of parts) length += byteLength;
  const json = bytes.subarray(bytes.byteLength - length);
  return { document, title, versionSince, json, record: { kind: notebookRecords, bytes } };
}

export function* decodeNotebook(json: Uint8Array): Generator<undefined, NotebookDocument> {
  return (yield* parseTrustedJson(json)) as NotebookDocument;
}

/**
 * Returns the result of `decodeNotebook`. For a large notebook, also makes the JSON of its cells, because most cells will be
 * saved unchanged.
 */
export function* decodePrepared(json: Uint8Array): Generator<undefined, NotebookDocument> {
  const document = yield* decodeNotebook(json);
  if (json.byteLength > MAX_SIZE_AT_ONCE) yield* jsonOfCells(document.serialization.cells);
  return document;
}

/** Returns a notebook's entry in lists. */
function summaryOf(
  notebook: NotebookDocument,
  title: string | null,
): Omit<NotebookSummaryRecord, 'versionSince'> {
  const { id, createdBy, createdAt, updatedBy, updatedAt, serialization, datasourceSlugs, metadata } =
    notebook;
  const shown = shownMetadata(metadata);
  const cellCount = serialization.cells.length;
  const people = { createdBy, createdAt, updatedBy, updatedAt };
  const summary = { id, title, cellCount, datasourceSlugs, ...shown, ...people };
  return { title, ...shown, summary: Buffer.from(JSON.stringify(summary)) };
}
