import type { PageAccess } from '#src/base/caller/page-access.ts';
import { AppError } from '#src/base/errors/errors.ts';
import { isShortJson } from '#src/base/json/json-write.ts';
import type { CompletionRequest, ElementCommand, Kernel } from '#src/confined/processes/kernel/kernel.ts';
import type { DocumentChange, KernelMessage } from '#src/confined/processes/kernel/messages.ts';
import type { NotebookPlace } from '#src/contract/wire/presence.ts';
import type { SessionMode } from '#src/contract/wire/session.ts';
import type { EventSink, Subscription } from '#src/runtime/events/event-sink.ts';
import {
  type ChangeAuthor,
  type LiveNotebook,
  MAX_APP_OPTIONS_CHARS,
  type NotebookFollower,
} from '../open/live-notebook.ts';
import { offeredPackages } from '../open/missing-packages.ts';
import { SCRATCH, type ViewCell } from '../open/view.ts';
import { EchoFilter } from './echo-filter.ts';
import { escapeHtml } from './page-html.ts';
import { layoutFile, layoutOf, type PageLayout } from './page-layout.ts';
import {
  cellMessage,
  cellOpMessages,
  notRunMessage,
  type PageMessage,
  pageChange,
  settledMessage,
  stateMessages,
  transactionMessage,
  valueMessage,
  variablesMessage,
  widgetMessage,
} from './page-messages.ts';
import {
  closeFrame,
  lateFrame,
  messageFrames,
  PageStream,
  type PageStreams,
  slicedFrame,
} from './page-stream.ts';
import { type CodeOfCell, type CodesOfPage, PageWork, type PageWorkPorts } from './page-work.ts';
import { PagePresence, type PresencePorts } from './presence.ts';
import { SharedOutputs } from './shared-outputs.ts';

const HEARTBEAT_MS = 10_000;

/** An open page in a browser. It counts as the same page after its stream was cut. */
interface Page {
  readonly id: string;
  /** The number by which the kernel knows the page. */
  readonly number: number;
  userId: string;
  access: PageAccess;
  stream: PageStream | undefined;
  /** The texts that were sent to the page, and that the page sends back. */
  readonly echoes: EchoFilter;
  /**
   * The layout and the options of the app in the page's present version. When the page saves one of
   * them, it sends all of them.
   */
  layout: string;
  appOptions: AppOptions;
  /**
   * The time at which the page was last sent a change of the order of cells that another author
   * made.
   */
  reorderedMs: number;
}

/** A page gets a message at least this often. Otherwise its stream is cut off soon. */
const MAX_DELIVERY_MS = 5000;

/**
 * How long pages whose stream has ended are remembered, so that a page that connects again is
 * recognised.
 */
const MAX_PAGES = 200;

/** The name and the description of a message that the page shows at its top or in a corner. */
interface Notice {
  readonly title: string;
  readonly description: string;
}

/** The approximate memory of a page's first state for each cell, in addition to texts and outputs, which pages share. */
const STATE_BYTES_OF_CELL = 600;

/** marimo's page cannot add a cell to a notebook that has none. */
const FIRST_CELL: DocumentChange = {
  type: 'create-cell',
  cellId: 'Hbol', // marimo's name for the first cell
  code: '',
  name: '',
  config: {},
  before: null,
  after: null,
};

const FULL: PageMessage = [
  'alert',
  {
    title: 'The notebook is full',
    description: 'The notebook has no room for this change, so it was not saved. Delete code or cells first.',
    variant: 'danger',
  },
];

/**
 * The size by which `isShortJson` counts a layout that may fit: it counts at most four times the characters of the JSON, because it
 * counts eight for a value such as `1,`.
 */
const MAX_LAYOUT_CHARS = 4 * MAX_APP_OPTIONS_CHARS;

type AppOptions = Readonly<Record<string, unknown>>;

/** The values that marimo's page uses for options that the notebook does not have. */
const OPTIONS_OF_PAGE: AppOptions = { width: 'medium', auto_download: [], sql_output: 'auto' };

export interface PageHubPorts extends PageWorkPorts, PresencePorts, PageStreams {
  /** Returns whether the workspace has a package with this name already. The next kernel has it then. */
  readonly hasPackage: (name: string) => boolean;
}

/** The page and the user that send a request. */
export interface PageCaller {
  readonly pageId: string;
  readonly userId: string;
}

/**
 * The pages of one open notebook. It sends them the reports of the kernel and the changes of
 * others, and carries out their requests. It exists only while there is a page. The notebook is the
 * only copy of the document, so nothing here is ahead of it.
 */
export class PageHub implements NotebookFollower {
  readonly #live: LiveNotebook;
  readonly #work: PageWork;
  readonly #presence: PagePresence;
  readonly #over: () => void;
  readonly #ports: PageHubPorts;
  readonly #outputs: SharedOutputs;
  readonly #pages = new Map<string, Page>();
  /**
   * The page to which the kernel is sending its state; null when the kernel's messages are for all
   * pages.
   */
  #receiver: Page | null | undefined = null;
  #kernel: Kernel | undefined;
  #numbers = 0;
  #isOver = false;
  readonly #heartbeat: NodeJS.Timeout;

  /** `over` is called once the last page has left, or the notebook has left memory. */
  constructor(live: LiveNotebook, ports: PageHubPorts, over: () => void) {
    this.#live = live;
    this.#over = over;
    this.#ports = ports;
    this.#outputs = new SharedOutputs(ports.budget);
    this.#work = new PageWork(live, ports, {
      shown: (cellIds, status) =>
        this.#broadcastAll(cellIds.map((cellId) => cellMessage(cellId, { status }))),
      refused: (notice) => this.#alert(notice),
      idle: () => this.#left(),
    });
    this.#presence = new PagePresence(live, ports, () =>
      [...this.#pages.values()].filter(({ stream }) => stream !== undefined),
    );
    this.#kernel = live.kernel;
    this.#heartbeat = setInterval(() => {
      for (const { stream, echoes } of this.#pages.values()) {
        stream?.beat();
        echoes.trim();
      }
      this.#presence.beat();
    }, HEARTBEAT_MS).unref();
    live.follower = this;
  }

  get pageCount(): number {
    let count = 0;
    for (const { stream } of this.#pages.values()) if (stream !== undefined) count++;
    return count;
  }

  get #appOptions(): AppOptions {
    return this.#live.document.serialization.app.options;
  }

  /** The bytes of encoded outputs that are kept because several pages may need them. */
  get keptBytes(): number {
    return this.#outputs.keptBytes;
  }

  /**
   * Begins the stream of a page, with the state of the notebook. The page of a person who may edit gives an empty notebook its first
   * cell, and runs the cells of an app that nobody has run yet. `mode` is that of the session.
   */
  attach(
    { pageId, userId }: PageCaller,
    access: PageAccess,
    mode: SessionMode,
    sink: EventSink,
  ): Subscription {
    const live = this.#live;
    if (access === 'edit' && mode === 'edit' && this.#live.view.cells.length === 0)
      this.#live.edit([FIRST_CELL], userId, null);
    const known = this.#pages.get(pageId);
    const earlier = known?.stream;
    const page: Page = known ?? {
      id: pageId,
      number: ++this.#numbers,
      userId,
      access,
      stream: undefined,
      echoes: new EchoFilter(),
      layout: '',
      appOptions: {},
      reorderedMs: Number.NEGATIVE_INFINITY,
    };
    page.userId = userId;
    page.access = access;
    page.layout = JSON.stringify(layoutOf(this.#appOptions));
    page.appOptions = this.#appOptions;
    this.#pages.delete(pageId);
    this.#pages.set(pageId, page);
    this.#forgetPages();
    const stream: PageStream = new PageStream(sink, this.#ports, () => {
      reader.end();
      if (page.stream !== stream) return;
      page.stream = undefined;
      live.touch(); // the notebook was in use until now
      this.#presence.tell();
      this.#left();
    });
    const reader = this.#outputs.reader(stream);
    page.stream = stream;
    earlier?.end(); // only now, because the hub ends when its last page has no stream
    const state = stateMessages(this.#live, access, (output) => reader.read(output));
    stream.begin(
      (function* () {
        if (known !== undefined) yield lateFrame('reconnected', {});
        for (const message of state) yield lateFrame(...message);
        reader.end();
      })(),
      this.#live.view.cells.length * STATE_BYTES_OF_CELL,
    );
    // A page that connects again keeps its own text where it is newer (page-connection.ts), so nothing of it need come back.
    for (const { id, code } of this.#live.view.cells) page.echoes.corrected(id, code);
    this.#kernel?.follow(page.number);
    if (mode === 'run' && this.#hasNotRun) {
      if (access === 'edit') this.#work.runAll(userId);
      else this.#send(page, notRunMessage(this.#live.view.cells));
    }
    // A page that connects again shows the offer already, unless somebody has closed it.
    if (known === undefined) {
      const missing = live.missingPackages.filter((name) => !this.#ports.hasPackage(name));
      this.#offerPackages(page, missing);
    }
    this.#presence.tell();
    return stream;
  }

  /** Whether no cell has run in this kernel, and none is about to. */
  get #hasNotRun(): boolean {
    const { view, work } = this.#live;
    const isQuiet = this.#work.isIdle && work.current === undefined;
    return isQuiet && view.cells.length > 0 && view.cells.every(({ ran }) => ran === null);
  }

  /** Begins a stream of the people and the agent in the notebook. */
  followPresence(place: NotebookPlace, sink: EventSink): Subscription {
    return this.#presence.follow(place, sink, () => this.#left());
  }

  /**
   * Changes the document in the name of a page. Returns nothing: the changes that took effect are
   * in the notebook, and are being written to the disk.
   */
  change(caller: PageCaller, changes: readonly DocumentChange[]): void {
    this.#change(caller, changes);
    if (this.#work.isIdle) {
      if (this.#pages.get(caller.pageId)?.stream === undefined) this.#left();
      return;
    }
    for (const codes of this.#work.takeCodesOfNewCells()) this.#write(codes);
    this.#work.wake(); // a run may wait for a cell that was just created
  }

  #change({ pageId, userId }: PageCaller, changes: readonly DocumentChange[]): void {
    const page = this.#pages.get(pageId);
    const { view } = this.#live;
    const repeated = new Set<string>();
    const wanted: DocumentChange[] = [];
    for (const sent of changes) {
      const change = pageChange(sent);
      if (change.type === 'set-code') {
        // A page sends back the texts that it has received. If such a text were taken for an edit, it
        // would undo later changes.
        if (page?.echoes.isEcho(change.cellId, change.code) === true) repeated.add(change.cellId);
        if (repeated.has(change.cellId) || view.get(change.cellId)?.code === change.code) continue;
      }
      wanted.push(change);
    }
    const isRepeated = (change: DocumentChange) => change.type === 'set-code' && repeated.has(change.cellId);
    const corrections = repeated.size === 0 ? [] : this.#correctionsOf(changes.filter(isRepeated));
    if (wanted.length > 0) {
      const effective = this.#live.edit(wanted, userId, page ?? null);
      if (page !== undefined) corrections.push(...this.#corrections(page, wanted, effective));
    }
    if (page !== undefined && corrections.length > 0) this.#correct(page, corrections);
  }

  /**
   * Returns the result of a page's own changes where the page may show another one: a change of somebody else, made before, can reach
   * it after its own, and changes for which the notebook has no room had no effect.
   */
  #corrections(
    page: Page,
    wanted: readonly DocumentChange[],
    effective: readonly DocumentChange[],
  ): DocumentChange[] {
    const { view } = this.#live;
    const refused = effective.length === wanted.length ? [] : this.#refused(wanted, effective);
    if (refused.length > 0) this.#send(page, FULL);
    const behind = effective.filter(
      (change) => change.type === 'set-code' && page.echoes.mayBeBehind(change.cellId),
    );
    const isOrderUnsure =
      performance.now() - page.reorderedMs < MAX_DELIVERY_MS && effective.some(changesOrder);
    if (!isOrderUnsure) return [...refused, ...behind];
    return [...refused, ...behind, { type: 'reorder-cells', cellIds: view.order }];
  }

  /** Returns the corrections of the changes that had no effect. */
  #refused(wanted: readonly DocumentChange[], effective: readonly DocumentChange[]): DocumentChange[] {
    const taken = new Set(effective.map(keyOf));
    return this.#correctionsOf(wanted.filter((change) => !taken.has(keyOf(change))));
  }

  /** Returns one correction for each cell, by the page's last change of it: a correction may have megabytes of code. */
  #correctionsOf(changes: readonly DocumentChange[]): DocumentChange[] {
    const last = new Map<string, DocumentChange>();
    for (const change of changes)
      if (change.type === 'set-code' || change.type === 'create-cell') last.set(change.cellId, change);
    return [...last.values()].flatMap((change) => this.#correctionOf(change));
  }

  /** Returns the change that gives a page the state of a cell that it wanted to change; none when it shows that state. */
  #correctionOf(change: DocumentChange): DocumentChange[] {
    if (change.type !== 'set-code' && change.type !== 'create-cell') return [];
    const { cellId } = change;
    const cell = this.#live.view.get(cellId);
    if (cell !== undefined)
      return cell.code === change.code ? [] : [{ type: 'set-code', cellId, code: cell.code }];
    return change.type === 'create-cell' ? [{ type: 'delete-cell', cellId }] : [];
  }

  #correct(page: Page, corrections: readonly DocumentChange[]): void {
    for (const change of corrections)
      if (change.type === 'set-code') page.echoes.corrected(change.cellId, change.code);
    page.stream?.send(this.#frameOf(transactionMessage(corrections)));
  }

  /**
   * Runs cells, as a durable run, when it is their turn. The codes that the page sends with the request are changes that the page
   * makes now: the request may come before the change itself. The page is sent neither the codes nor the change.
   */
  run(caller: PageCaller, cells: readonly CodeOfCell[]): void {
    this.#write({ caller, cells });
    const { view } = this.#live;
    this.#work.run({
      caller,
      cells: cells.map(({ cellId, code }) => ({ cellId, code: view.get(cellId)?.code ?? code })),
    });
  }

  /** Changes, in the name of a page, codes of cells that the notebook has. The page sends the same change once more a moment later. */
  #write({ caller, cells }: CodesOfPage): void {
    const { view } = this.#live;
    const changes = cells.flatMap(({ cellId, code }): DocumentChange[] =>
      [undefined, code].includes(view.get(cellId)?.code) ? [] : [{ type: 'set-code', cellId, code }],
    );
    if (changes.length === 0) return;
    this.#change(caller, changes);
    const page = this.#pages.get(caller.pageId);
    for (const change of changes)
      if (change.type === 'set-code' && view.get(change.cellId)?.code === change.code)
        page?.echoes.corrected(change.cellId, change.code);
  }

  /** Gives the kernel a command of a UI element when the command has its turn. The other pages show at once what the command sets. */
  element({ pageId, userId }: PageCaller, command: ElementCommand): void {
    this.#work.element(userId, command); // may refuse it
    for (const message of this.#setBy(command)) {
      const frame = this.#frameOf(message);
      for (const page of this.#pages.values()) if (page.id !== pageId) page.stream?.send(frame);
    }
  }

  /** Notes the values that a command sets, and returns the messages that set them in the pages that have not sent it. */
  #setBy(command: ElementCommand): readonly PageMessage[] {
    if (command.type === 'model') {
      const message = widgetMessage(command);
      return message === undefined ? [] : [message];
    }
    if (command.type !== 'update-ui-element') return [];
    const set = new Map(command.objectIds.map((id, at) => [id, command.values[at]]));
    for (const [id, value] of set) this.#live.uiValues.set(id, value);
    // A value that is too large to be kept for later pages does not go to the present ones either.
    return [...set].flatMap(([id, value]) =>
      this.#live.uiValues.get(id) === value ? [valueMessage(id, value)] : [],
    );
  }

  complete(request: CompletionRequest): void {
    this.#kernel?.complete(request);
  }

  /** Ends the running work, and forgets waiting work. Edits stay. */
  interrupt(): void {
    this.#work.interrupt();
  }

  /** Sets options of the app; null removes one. Throws `invalid_request` when the notebook has no room for them. */
  setAppOptions({ userId }: PageCaller, options: AppOptions): void {
    if (!this.#live.setAppOptions(options, userId)) throw tooManyOptions();
    this.#presence.tell(); // the title is one of the options, and pages show it
  }

  /** Saves the options of the app that differ from those that the page had. */
  saveAppOptions(caller: PageCaller, options: AppOptions): void {
    const page = this.#pages.get(caller.pageId);
    const before = { ...OPTIONS_OF_PAGE, ...(page?.appOptions ?? this.#appOptions) };
    const changed = Object.entries(options).filter(
      ([name, value]) => JSON.stringify(before[name] ?? null) !== JSON.stringify(value),
    );
    if (changed.length > 0) this.setAppOptions(caller, Object.fromEntries(changed));
    if (page !== undefined) page.appOptions = { ...page.appOptions, ...options };
  }

  /**
   * Saves the layout of the app. A page that sends back its unchanged layout does not undo a change
   * of another page. Throws like `setAppOptions`.
   */
  saveLayout(caller: PageCaller, layout: PageLayout | null): void {
    // A request may have 16 MiB of layout. Its JSON is made only when it can be short enough.
    if (!isShortJson(layout, MAX_LAYOUT_CHARS)) throw tooManyOptions();
    const page = this.#pages.get(caller.pageId);
    const text = JSON.stringify(layout);
    if ((page?.layout ?? JSON.stringify(layoutOf(this.#appOptions))) === text) return;
    this.setAppOptions(caller, { layout_file: layoutFile(layout) });
    if (page !== undefined) page.layout = text;
  }

  /** Sends a message to one page. */
  tell({ pageId }: PageCaller, message: PageMessage): void {
    const page = this.#pages.get(pageId);
    if (page !== undefined) this.#send(page, message);
  }

  message(message: KernelMessage): void {
    switch (message.op) {
      case 'bridge-page-state':
        this.#receiver = message.isOver
          ? null
          : [...this.#pages.values()].find(({ number }) => number === message.page);
        return;
      case 'cell-op':
        if (message.cellId === SCRATCH) return;
        for (const one of cellOpMessages(message)) this.#broadcast(one);
        return;
      case 'variables':
        this.#broadcast(variablesMessage(this.#live.view.variables));
        return;
      case 'missing-package-alert':
        for (const page of this.#pages.values()) this.#offerPackages(page, message.packages);
        return;
      case 'function-call-result':
      case 'completion-result':
      case 'other': {
        const { op, ...members } = message.fields;
        const frame = this.#frameOf([String(op), members]);
        if (this.#receiver === null) this.#broadcastFrame(frame);
        else this.#receiver?.stream?.send(frame);
        return;
      }
      default:
    }
  }

  valuesSet(values: Readonly<Record<string, unknown>>): void {
    for (const [id, value] of Object.entries(values)) this.#broadcast(valueMessage(id, value));
  }

  changed(changes: readonly DocumentChange[], origin: object | null, author: ChangeAuthor | null): void {
    if (author !== null) this.#presence.changed(changes, author);
    let frame: Uint8Array | Promise<Uint8Array> | undefined; // the same for all pages
    for (const page of this.#pages.values()) {
      if (page.stream === undefined) continue;
      const isOwn = page === origin;
      for (const change of changes) {
        if (change.type !== 'set-code' && change.type !== 'create-cell') continue;
        if (isOwn) page.echoes.wrote(change.cellId);
        else page.echoes.sent(change.cellId, change.code);
      }
      if (isOwn) continue;
      if (changes.some(changesOrder)) page.reorderedMs = performance.now();
      frame ??= this.#frameOf(transactionMessage(changes));
      page.stream.send(frame);
    }
  }

  settled(cells: readonly ViewCell[]): void {
    this.#broadcastAll(cells.map(settledMessage));
  }

  kernelChanged(kernel: Kernel | undefined, why = 'It was stopped.'): void {
    const wasLost = kernel === undefined && this.#kernel !== undefined;
    this.#kernel = kernel;
    this.#receiver = null;
    if (wasLost)
      this.#broadcast([
        'banner',
        {
          title: 'The kernel has ended',
          description: `${escapeHtml(why)} Its variables are gone. A new kernel starts; run the cells again.`,
          variant: 'danger',
          action: null,
        },
      ]);
    if (kernel === undefined) this.settled(this.#live.view.cells);
    for (const page of this.#pages.values()) if (page.stream !== undefined) kernel?.follow(page.number);
    this.#work.wake();
  }

  left(): void {
    this.#end();
    // Pages of a session that now sleeps, or that another worker now has, must connect again.
    if (this.#ports.isClosed()) this.#broadcastFrame(closeFrame('MARIMO_SHUTDOWN'));
    for (const { stream } of this.#pages.values()) stream?.end();
    this.#presence.end();
  }

  /** Called when the agent of the notebook has come, gone, begun or ended its work. */
  agentChanged(): void {
    this.#presence.tell();
  }

  /** Called when the session accepts work, or when its state has changed otherwise. */
  wake(): void {
    this.#work.wake();
    this.#presence.tell();
  }

  /** Tells a page which packages an import needs, if its user may install them. */
  #offerPackages(page: Page, named: readonly string[]): void {
    const packages = offeredPackages(named);
    if (page.access === 'edit' && packages.length > 0)
      this.#send(page, ['missing-package-alert', { packages, isolated: true, source: 'kernel' }]);
  }

  #alert(notice: Notice): void {
    this.#broadcast(['alert', { ...notice, variant: 'danger' }]);
  }

  #broadcast(message: PageMessage): void {
    this.#broadcastFrame(this.#frameOf(message));
  }

  /** Sends short messages in one piece: ten thousand pieces, one for each cell, would take each page's stream 50 ms. */
  #broadcastAll(messages: readonly PageMessage[]): void {
    if (messages.length > 0) this.#broadcastFrame(messageFrames(messages));
  }

  /** A message of the kernel, of a page or about a value may have megabytes. */
  #frameOf([op, data]: PageMessage): Uint8Array | Promise<Uint8Array> {
    return slicedFrame(op, data, this.#live.workspaceId);
  }

  #broadcastFrame(frame: Uint8Array | Promise<Uint8Array>): void {
    for (const { stream } of this.#pages.values()) stream?.send(frame);
  }

  #send(page: Page, message: PageMessage): void {
    page.stream?.send(this.#frameOf(message));
  }

  #forgetPages(): void {
    if (this.#pages.size <= MAX_PAGES) return;
    for (const [id, { stream }] of this.#pages) {
      if (stream === undefined) this.#pages.delete(id);
      if (this.#pages.size <= MAX_PAGES) return;
    }
  }

  #left(): void {
    if (this.pageCount > 0) return;
    this.#kernel?.follow(null);
    // While pages have asked for work that the kernel does not have yet, the hub stays until the kernel has got it.
    if (this.#work.isIdle && this.#presence.followerCount === 0) this.#end();
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearInterval(this.#heartbeat);
    this.#work.close();
    if (this.#live.follower === this) this.#live.follower = undefined;
    this.#over();
  }
}

function tooManyOptions(): AppError {
  return new AppError(
    'invalid_request',
    `The options of the app and its layout may take ${MAX_APP_OPTIONS_CHARS / 1024} KiB together.`,
  );
}

function changesOrder({ type }: DocumentChange): boolean {
  return type === 'create-cell' || type === 'delete-cell' || type === 'move-cell' || type === 'reorder-cells';
}

function keyOf(change: DocumentChange): string {
  return 'cellId' in change ? `${change.type} ${change.cellId}` : change.type;
}
