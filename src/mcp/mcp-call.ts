/** One tool call of an MCP client, with its caller, its notebook and its time limit. */
import type { ToolCall } from '#src/agent/tools/tool.ts';
import type { Principal } from '#src/base/caller/principal.ts';
import type { Client } from '#src/contract/client/client.ts';
import type { Connection } from '#src/contract/client/connection.ts';

/** The caller of tools. */
export interface McpCaller {
  readonly principal: Principal;
  /** The API, with the token and the workspace of the caller. */
  readonly client: Client;
  /** The connection of `client`, for answers that are read in slices. */
  readonly connection: Connection;
}

/** An asset of a run that is too large to be shown. */
export interface AssetLink {
  readonly runId: string;
  readonly assetId: string;
  readonly mimetype: string;
}

export interface McpCall extends ToolCall, McpCaller {
  /** The notebook that the input names; empty when it names none. */
  readonly notebookId: string;
  /** How long code may run, in seconds. */
  readonly timeoutS: number;
  /** Whether the client wants to be informed of the progress of the call. */
  readonly wantsProgress: boolean;
  /** Informs the client of the progress of the call. */
  readonly report: (message: string) => void;
  /** Collects the assets to which the result refers. */
  readonly links: AssetLink[];
}
