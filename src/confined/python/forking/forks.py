"""How the zygote forks: kernels, from a spare where one waits, and all other children."""

import os
import signal
import sys
import time
import traceback

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
        self.spares = Spares(self.clone_spare)
        self.shares = {}  # share -> (control group or None, key of the memory watch or None, pids that have it)

    def start(self, order):
        """Starts the process that `order` asks for."""
        from forking import orders

        if self.watching.counts(order.memory) and self.watching.watch is None:
            self.watching.start()
        if not isinstance(order, orders.Fork):
            self.fork(order, self.run_other)
        elif order.confine is None or not self.found.namespaces:
            self.fork(order, self.run_kernel)
        else:
            policy = Policy(order.confine, order.memory)
            if order.is_proof:
                self.spares.policy = policy
                self.spares.make()
            if not self.use_spare(policy, order):
                self.fork(order, self.run_kernel)
            if not order.is_proof:
                self.spares.expect(policy)

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

    def clone_spare(self, policy, control, await_order):
        """Returns the pid of an init that has nothing to do yet; see spare.py. It keeps the descriptor `control`."""
        pid, _, theirs = self.clone(policy, None)
        if pid == 0:
            group, words, link, confinement = theirs
            become = lambda: self.become_kernel(confinement, group, link, await_order)  # noqa: E731
            self.live(confinement, group, words, (link, control), become)
        return pid

    def use_spare(self, policy, order) -> bool:
        """Uses the spare for an order. Returns False when no spare fits, or when it cannot be used.
        """
        spare = self.spares.take(policy)
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
