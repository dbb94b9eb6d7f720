/**
 * Divides the processors among workspaces, on machines where each kernel has a control group with a weight of processor time. Every
 * workspace has the same weight, which its busy kernels divide among themselves. So eight busy kernels of one workspace together get
 * no more than the one busy kernel of another.
 *
 * A kernel that is not busy may have threads of its own. Such kernels have the weight divided by the number of all kernels of the
 * workspace, so they never get much more than one further share together.
 *
 * This object only counts. Kernel hosts write the weights, at most once in `PAUSE_MS`, and only those that have changed. One object
 * serves all kernel hosts of a machine.
 */

/** One run of a kernel host, as it takes weights. */
export interface WeightTaker {
  /** The weight of a whole workspace, and of every group when it is made. */
  readonly whole: number;
  /** Sets the weights of kernels, by their ids. It ignores kernels that have ended. */
  weigh(weights: Readonly<Record<string, number>>): void;
}

interface Member {
  readonly id: string;
  readonly workspace: Workspace;
  readonly taker: WeightTaker;
  weight: number;
  isBusy: boolean;
}

interface Workspace {
  readonly key: string;
  readonly members: Set<Member>;
  busy: number;
}

/** Changes within this time are written together. */
const PAUSE_MS = 20;
/** The most weights in one order to a kernel host, whose lines have a limit. */
const MAX_WEIGHTS = 500;
/** Up to this number, kernels are counted exactly; see `share`. */
const EXACT = 16;

export class ProcessorShares {
  readonly #workspaces = new Map<string, Workspace>();
  readonly #members = new Map<string, Member>();
  readonly #changed = new Set<Workspace>();
  #pause: NodeJS.Timeout | undefined;

  /** Counts a kernel that was ordered from a host. `id` is new for each kernel. */
  enter(id: string, workspaceId: string, taker: WeightTaker): void {
    const workspace = this.#workspaces.get(workspaceId) ?? {
      key: workspaceId,
      members: new Set<Member>(),
      busy: 0,
    };
    this.#workspaces.set(workspaceId, workspace);
    const member = { id, workspace, taker, weight: taker.whole, isBusy: false };
    workspace.members.add(member);
    this.#members.set(id, member);
    this.#change(workspace);
  }

  /** Notes that a kernel works, or that it has ended its work. Ignores kernels that are not counted. */
  setBusy(id: string, isBusy: boolean): void {
    const member = this.#members.get(id);
    if (member === undefined || member.isBusy === isBusy) return;
    member.isBusy = isBusy;
    member.workspace.busy += isBusy ? 1 : -1;
    this.#change(member.workspace);
  }

  /** Removes a kernel from the count. Ignores kernels that are not counted. */
  leave(id: string): void {
    const member = this.#members.get(id);
    if (member === undefined) return;
    const { workspace } = member;
    this.#members.delete(id);
    workspace.members.delete(member);
    if (member.isBusy) workspace.busy--;
    if (workspace.members.size === 0) {
      this.#workspaces.delete(workspace.key);
      this.#changed.delete(workspace);
    } else this.#change(workspace);
  }

  #change(workspace: Workspace): void {
    this.#changed.add(workspace);
    this.#pause ??= setTimeout(() => this.#write(), PAUSE_MS).unref();
  }

  #write(): void {
    this.#pause = undefined;
    const weights = new Map<WeightTaker, [string, number][]>();
    for (const { members, busy } of this.#changed) {
      for (const member of members) {
        const { taker } = member;
        const weight = share(taker.whole, member.isBusy ? busy : members.size);
        if (weight === member.weight) continue;
        member.weight = weight;
        const entries = weights.get(taker) ?? [];
        weights.set(taker, entries);
        entries.push([member.id, weight]);
      }
    }
    this.#changed.clear();
    for (const [taker, entries] of weights)
      for (let at = 0; at < entries.length; at += MAX_WEIGHTS)
        taker.weigh(Object.fromEntries(entries.slice(at, at + MAX_WEIGHTS)));
  }
}

/**
 * Returns the weight of each of `count` kernels. Large numbers are rounded up to four binary digits, so that a change of one
 * kernel seldom changes the weights of hundreds of others.
 */
function share(whole: number, count: number): number {
  const step = count <= EXACT ? 1 : 2 ** (Math.floor(Math.log2(count)) - 3);
  return Math.max(1, Math.round(whole / (Math.ceil(count / step) * step)));
}
