import { type StartZygote, type Zygote, ZygoteProcess } from '../processes/host/zygote-process.ts';
import { isForNodes } from './kernel-arrivals.ts';
import type { KernelNodes } from './kernel-nodes.ts';
import { releaseOf } from './release.ts';

/**
 * Returns a starter of kernel hosts that has notebooks' kernels on nodes. Everything else stays on this machine: files that users
 * bring are parsed here, and so is the check that a kernel starts. `isPlain`: the kernels shall have only
 * marimo loaded.
 */
export function withNodes(
  nodes: KernelNodes,
  isPlain: boolean,
  start: StartZygote = ZygoteProcess.start,
): StartZygote {
  return async (options) => {
    const { zygote: local, hello } = await start(options);
    nodes.release = releaseOf(hello);
    const zygote: Zygote = {
      get alive() {
        return local.alive;
      },
      ended: local.ended,
      order(id, order, listener, where) {
        if (isForNodes(order)) nodes.order(id, order, listener, { ...where, isPlain });
        else local.order(id, order, listener, where);
      },
      signal(id, signal) {
        if (!nodes.signal(id, signal)) local.signal(id, signal);
      },
      setBusy(id, isBusy) {
        if (!nodes.setBusy(id, isBusy)) local.setBusy?.(id, isBusy);
      },
      attend: () => local.attend?.(),
      stop: () => local.stop(),
      kill: () => local.kill(),
    };
    return { zygote, hello };
  };
}
