"""How the zygote forks: kernels, and processes for one request, from a spare where one waits, and all other children."""

import os
import signal
import sys
import time
import traceback
from functools import partial

import msgspec

import processes
from confinement import descriptors
from connection import report_failure
from forking import cgroups
from forking.child import Child, open_words
from forking.spare import Policy, Spares


class Forks:
    """Makes the children that orders ask for, each with its confinement and its control group."""

    def __init__(self, family, watching, shield, found, groups, host_modules, inbox):
        self.family = family
        self.watching = watching
        self.shield = shield  # process and group ids that kernels may not signal
        self.found = found  # the layers of confinement that this machine has
        self.groups = groups  # the folder in which kernels' control groups are made, or None
        self.host_modules = host_modules
        self.inbox = inbox  # the inbox: a child may not keep its orders for others
        self.kernel_spares = Spares(partial(self.clone_spare, self.become_kernel))
        self.brief_spares = Spares(partial(self.clone_spare, self.become_brief))
        self.shares = {}  # share -> (control group or None, key of the memory watch or None, pids that have it)

    def start(self, order):
        """Starts the process that `order` asks for."""
        from forking import orders

        if self.watching.counts(order.memory) and self.watching.watch is None:
            self.watching.start()
        is_alone = order.confine is not None and self.found.namespaces
        if isinstance(order, orders.Fork) and is_alone:
            self.start_kernel(order)
        elif isinstance(order, orders.BRIEF) and is_alone and order.share and order.share not in self.shares:
            self.start_from(self.brief_spares, order, self.run_other)
        else:
            self.fork(order, self.run_kernel if isinstance(order, orders.Fork) else self.run_other)

    def start_kernel(self, order):
        if order.is_proof:
            self.kernel_spares.policy = policy_of(order)
            self.kernel_spares.make()
        self.start_from(self.kernel_spares, order, self.run_kernel, is_last=order.is_proof)

    def start_from(self, spares, order, become, is_last=False):
        """Starts a process from a spare, or without one, and has the next spare made unless it is the last."""
        policy = policy_of(order)
        if not self.use_spare(spares, policy, order):
            self.fork(order, become)
        if not is_last:
            spares.expect(policy)

    def make_spares(self):
        """Makes the spares that are due."""
        for spares in self.all_spares():
            if spares.patience_s() == 0:
                spares.make()

    def spare_patience_s(self) -> float | None:
        """Returns the seconds until a spare must be made; None when none is to be made."""
        return min((wait for spares in self.all_spares() if (wait := spares.patience_s()) is not None), default=None)

    def drop_spares(self):
        for spares in self.all_spares():
            spares.drop()

    def forget_spare(self, pid):
        for spares in self.all_spares():
            spares.forget(pid)

    def all_spares(self):
        return self.kernel_spares, self.brief_spares

    def confine(self, order):
        """Returns the confinement of an order or a policy, which have the same members for confinement and memory."""
        from confinement.session import Confinement

        if order.confine is None:
            return None
        no_held_memory = self.watching.counts(order.memory)
        return Confinement(self.found, order.confine, self.shield, no_held_memory, order.writes_files)

    def has_init(self, order) -> bool:
        """Returns whether the child is the init of namespaces."""
        return order.confine is not None and self.found.namespaces

    def fork(self, order, become):
        """Forks a process that runs the function `become` and nothing else. A failure is reported as a refusal.
        """
        forked_at = time.perf_counter()
        try:
            pid, child, theirs = self.clone(order, order.id)
        except OSError as error:  # the system has no process or memory left
            self.family.say(op="refused", id=order.id, error=str(error))
            return
        if pid == 0:
            group, words, link, confinement = theirs
            connection = bytes(order.connection)  # copied, because the child then erases all orders

            def life():
                mine = msgspec.structs.replace(within(order, group), connection=connection)
                become(mine, forked_at, confinement, link)

            self.live(confinement, group, words, (link,), life)
        self.follow(pid, child)

    def clone(self, order, id):
        """Forks. Returns (pid, its Child, None), and in the child (0, None, (group, words, link, confinement)). Raises OSError
        when that is impossible."""
        confinement = self.confine(order)
        has_init = self.has_init(order)
        is_watched = has_init or (confinement is not None and confinement.is_supervised)
        link, theirs = os.pipe2(os.O_CLOEXEC) if is_watched else (None, None)
        words, group = open_words(), None
        try:
            group = self.find_group(order)
            pid = confinement.fork() if confinement else os.fork()
        except OSError:
            close(link, theirs, words)
            self.discard(group)
            raise
        if pid == 0:
            return 0, None, (group, words, theirs, confinement)
        close(theirs)
        if group:
            group.forked()
        _, key, _ = self.shares.get(order.share, (None, None, None))
        child = Child(id, link, group, words, self.watching.facts_of(order, has_init, key), has_init)
        self.join(pid, child, order)
        self.family.children[pid] = child
        return pid, child, None

    def join(self, pid, child, order):
        """Notes with which other processes a child shares its memory."""
        if order.share is None or not order.memory:
            return
        child.share = order.share
        _, _, pids = self.shares.get(order.share, (None, None, set()))
        self.shares[order.share] = (child.group, child.watched and child.watched[0], pids | {pid})

    def find_group(self, order):
        """Returns the control group for a process that is about to be forked, or None."""
        if not (self.groups and order.memory):
            return None
        group, *_ = self.shares.get(order.share, (None,))
        if group is None:
            return self.groups.make(order.memory)
        group.reopen()
        return group

    def bury(self, pid, child):
        """Called when a child has ended. Removes its control group once no process in it is left."""
        self.watching.forget(pid, child)
        group, key, pids = self.shares.pop(child.share, (child.group, None, set()))
        if left := pids - {pid}:
            self.shares[child.share] = (group, key, left)
        elif group:
            self.groups.remove(group)

    def follow(self, pid, child):
        self.watching.begin(pid, child)
        self.family.follow(pid, child)

    def clone_spare(self, become, policy, control, await_order):
        """Returns the pid of an init that has nothing to do yet; see spare.py. It keeps the descriptor `control`."""
        pid, _, theirs = self.clone(policy, None)
        if pid == 0:
            group, words, link, confinement = theirs
            life = lambda: become(confinement, group, link, await_order)  # noqa: E731
            self.live(confinement, group, words, (link, control), life)
        return pid

    def use_spare(self, spares, policy, order) -> bool:
        """Uses the spare for an order. Returns False when no spare fits, or when it cannot be used.
        """
        spare = spares.take(policy)
        if spare is None:
            return False
        try:
            spare.give(order)
        except OSError:
            return False
        finally:
            spare.control.close()
        child = self.family.children[spare.pid]
        child.id = order.id
        self.join(spare.pid, child, order)
        self.follow(spare.pid, child)
        return True

    def discard(self, group):
        """Removes a control group that no process has joined. A group with other processes stays.
        """
        if group:
            group.forked()
            if all(group is not shared for shared, *_ in self.shares.values()):
                self.groups.remove(group)

    # The code from here on runs in a child.

    def live(self, confinement, group, words, kept, life):
        """Runs the child with standard input, output and error and the descriptors in `kept`. Never
        returns.
        """
        try:
            self.inbox.erase()
            processes.call_this("starting")  # the first difference between the child and the zygote
            os.dup2(words, 2)
            if confinement:
                confinement.settle()
            if group:
                group.join()
                if confinement:
                    confinement.own_group = group.path
            leave_zygote()
            descriptors.close_all_but(*kept)
            life()
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            report_failure()
        finally:
            os._exit(70)

    def become_kernel(self, confinement, group, link, await_order):
        confinement.prepare()
        order = within(await_order(), group)
        self.run_kernel(order, time.perf_counter(), confinement, link)

    def become_brief(self, confinement, group, link, await_order):
        from conversion import convert
        from forking import orders

        confinement.prepare()
        convert.warm_up()
        given = within(await_order(), group)
        kind = next(kind for kind in orders.BRIEF if tag_of(kind) == given.op)
        order = kind(id="", connection=given.connection, memory=given.memory, nice=given.nice)
        self.run_other(order, None, confinement, link)

    def run_kernel(self, order, forked_at, confinement, link):
        from kernel import kernel_process

        kernel_process.run(order, forked_at, self.host_modules, confinement, link)

    def run_other(self, order, forked_at, confinement, link):
        from children import installer, program, syntax
        from conversion import convert
        from engines import engine
        from forking import orders

        lives = {
            orders.Convert: convert,
            orders.Engine: engine,
            orders.Install: installer,
            orders.JudgeSyntax: syntax,
            orders.RunProgram: program,
        }
        lives[type(order)].run(order, confinement, link)


def tag_of(kind) -> str:
    """Returns the `op` of a kind of order."""
    return kind.__struct_config__.tag


def policy_of(order) -> Policy:
    return Policy(order.confine, order.memory, order.writes_files)


def leave_zygote():
    """In a child: gives up the zygote's signals and its connection to the server."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    processes.silence_stdio(0, 1)


def within(order, group):
    """Returns the order with the memory that each process of a kernel may reserve. That is more
    than the limit of the group, which counts all processes together."""
    if group:
        order.memory *= cgroups.RESERVED
    return order


def close(*descriptors):
    """Closes those descriptors that are not None."""
    for descriptor in descriptors:
        if descriptor is not None:
            os.close(descriptor)
