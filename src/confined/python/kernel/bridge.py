"""Extends marimo's kernel with the reports that a server needs and marimo does not send. Fits the marimo that
compatibility.py names.

- An open runs nothing, and still registers all cells: structural errors and variables are known before anything runs.
- Each command is answered by `bridge-done` with its seq and the exact state of every cell that may have changed, after any
  failure, see verdicts.py. A
  command without an answer is answered with an error once this kernel has had nothing to do for 30 seconds.
- Edits without a run make cells and their dependents stale. For the changes to runs, see runs.py.
- `"judge": [cell ids]` on edit-cells: nothing is edited. `bridge-judged` reports the errors that those cells would
  have, see judge.py.
- `"environment": {name: value}` on create-notebook: variables that the zygote must not see, because all later kernels
  inherit its memory.
- `"reactive": true`: cells that depend on a changed value run, as they do in marimo's own page; without it they
  become stale.
- `"keep": true` on execute-scratchpad: the names that the code makes stay for later code, see scratch_names.py.
- `bridge-widgets` has the state of all widgets as a text of JSON, if it has changed, for pages that are made without
  a kernel.
- A burst of notifications goes out in one send, see outbox.py.

Everything but fill_queues runs on the kernel's main thread.
"""

import itertools
import logging
import os
import queue
import signal
import threading

import msgspec
from marimo import _loggers
from marimo._runtime import commands, runtime
from marimo._runtime.context import get_context
from marimo._runtime.runtime import Kernel
from marimo._runtime.utils import set_ui_element_request_manager

from frames import CALL, COMPLETION, CONTROL, FOLLOW, INTERRUPT, UI
from kernel import console, copies, element_files, elements, judge, runs, variables, verdicts
from kernel.calls import Calls
from kernel.control_queue import ControlQueue
from kernel.kernel_state import STATE, Asked
from kernel.outbox import MessageTooLarge
from kernel.page_state import MAX_SAVED_BYTES
from outputs import sendable
from troupe import channel as server_channel

MAX_ERROR_CHARS = 2_000
MAX_SHORTENED_ITEMS = 5  # so that errors of 10,000 cells, as many as a notebook may have, fit in a frame
MAX_SHORTENED_CHARS = 500


def fill_queues(queues, frames, calls):
    """Runs in the reader thread: hands each frame to marimo. A frame that cannot be read is
    answered with an error.
    """
    read_asked = msgspec.json.Decoder(Asked).decode
    read = {
        CONTROL: msgspec.json.Decoder(commands.CommandMessage).decode,
        UI: msgspec.json.Decoder(commands.BatchableCommand).decode,
        COMPLETION: msgspec.json.Decoder(commands.OutOfBandCommand).decode,
    }
    for channel, body in frames:
        asked = Asked()
        try:
            if channel == CALL:
                calls.receive(body)
                continue
            if channel == INTERRUPT:
                STATE.interrupts.announce(body)
                continue
            if channel == FOLLOW:
                STATE.outbox.follow(body)
                continue
            if channel == CONTROL:
                asked = read_asked(body)
                if asked.seq is not None:
                    STATE.unanswered.add(asked.seq)
            message = read[channel](body)
            if isinstance(message, commands.BatchableCommand):
                # marimo needs these on both queues, and makes another object of them
                STATE.asked[message.token] = asked
                queues[UI].put(message)
                queues[CONTROL].put(message)
                continue
            if channel == CONTROL:
                STATE.asked[id(message)] = asked
            queues[channel].put(message)
        except Exception as error:  # this includes an AssertionError of marimo's own, because this thread must survive every frame
            answer(Asked(seq=asked.seq), None, "invalid", repr(error), False, {})


def answer(asked, token, kind, error, interrupted, cells, unknown=None, failures=None):
    """
    Sends the end of a command, and returns whether all of `cells` were sent. `cells` are verdicts, see verdicts.py.
    `unknown` are the elements of the command that do not exist. `failures` has the reasons of the elements that failed,
    by id.
    """
    done = {"seq": asked.seq, "token": token, "type": kind, "interrupted": interrupted}
    done["error"] = error and error[:MAX_ERROR_CHARS]
    of_elements = {name: found for name, found in (("unknown", unknown), ("failures", failures)) if found}
    sent = _say_of_cells("cells", cells, op="bridge-done", **done, **of_elements)
    if sent is None:
        STATE.outbox.say(op="bridge-done", cells={}, **{**done, "token": None})
    STATE.unanswered.discard(asked.seq)
    return sent is not None and len(sent) == len(cells)


def answer_silence():
    """
    Answers the commands that are still without an answer although this kernel has had nothing to do for a while. Such
    a command shows a bug of this bridge, or a marimo that handles commands in another way. Without the answer the
    session would stay busy.
    """
    for seq in sorted(STATE.unanswered):
        answer(Asked(seq=seq), None, "lost", "The kernel ended this command without an answer.", False, {})


def _say_of_cells(member, by_cell, **message):
    """Sends a message with one entry for each cell, and returns the entries; None if it was not sent. If it would be larger than the server
    takes, the errors in it are shortened: when a thousand cells define one variable, the error of each cell names all
    others. If that is not enough, because notebook code has made more cells than a notebook may have, the message has no
    entries. It is not sent if its other members are too large."""
    for shorten in (None, _shorten, lambda _: {}):
        try:
            entries = shorten(by_cell) if shorten else by_cell
            STATE.outbox.say(**message, **{member: entries})
            return entries
        except MessageTooLarge:
            continue
    return None


def _shorten(value):
    """Returns plain data with only the beginning of each list and text, but with all members of dictionaries."""
    if isinstance(value, str):
        return value[:MAX_SHORTENED_CHARS]
    if isinstance(value, dict):
        return {name: _shorten(member) for name, member in value.items()}
    return [_shorten(item) for item in value[:MAX_SHORTENED_ITEMS]] if isinstance(value, (list, tuple)) else value


def install():
    """Patches marimo in this process; once, in the zygote."""
    Kernel.handle_message = _handle_message(Kernel.handle_message)
    Kernel.mutate_graph = _mutate_graph(Kernel.mutate_graph)
    merge = set_ui_element_request_manager.merge_batchable_commands
    set_ui_element_request_manager.merge_batchable_commands = _merge_own_commands(merge)
    runs.install()
    judge.install()
    variables.install()
    verdicts.install()
    elements.install()
    element_files.install()
    # A forked child of a cell would inherit a handler, and lose a signal that arrives before its first step.
    runtime.handlers.construct_sigterm_handler = lambda kernel: signal.SIG_DFL
    # marimo would watch its parent by waking up each second; the guardian does this without it
    runtime.start_parent_poller = lambda *args, **kwargs: None
    _close_log_files()


def _pass_trace_on(traceparent):
    """Sets TRACEPARENT, the variable of OpenTelemetry's convention, to the trace of the run, for
    the code and the programs that it starts."""
    if traceparent is not None:
        os.environ["TRACEPARENT"] = traceparent
    elif STATE.is_traced:
        os.environ.pop("TRACEPARENT", None)
    STATE.is_traced = traceparent is not None


def _handle_message(handle):
    async def handle_message(self, request):
        if STATE.begin_work:
            STATE.begin_work()
            STATE.begin_work = None
        token = getattr(request, "token", None)
        asked = STATE.asked.pop(id(request), None) or STATE.asked.pop(token, None) or Asked()
        error, outermost, unknown = None, not STATE.running, None
        STATE.running.append(asked)
        if outermost:
            STATE.interrupted = False
            STATE.interrupts.begin(asked.seq)
            STATE.outbox.gather()
            _pass_trace_on(asked.traceparent)
        mode = self.reactive_execution_mode
        if asked.reactive:
            self.reactive_execution_mode = "autorun"
        try:
            if asked.judge is not None:
                _say_of_cells("errors", judge.judge(self.graph, request.codes, asked.judge), op="bridge-judged")
                return
            os.environ.update(asked.environment)
            unknown = _find_unknown(request)
            if outermost and isinstance(request, commands.UpdateUIElementCommand):
                elements.begin_noting()
            _prepare(self, request)
            await handle(self, request)
            if isinstance(request, (commands.CreateNotebookCommand, commands.EditCellsCommand)):
                _register_pending(self)
            STATE.verdicts.mark_unrun_stale(self)
        except BaseException as failure:
            error = repr(failure)
            STATE.interrupted |= isinstance(failure, KeyboardInterrupt)
            raise
        finally:
            STATE.running.pop()
            self.reactive_execution_mode = mode
            if outermost:
                STATE.interrupts.end()
                STATE.scratch_names.follow(self.globals)
                console.wake_writer()
                server_channel.end_work(STATE.interrupted)
                if not isinstance(request, commands.ModelCommand):
                    _save_widgets()
            failures = elements.take_failures() if outermost else None
            is_awaited = asked.seq is None or asked.seq in STATE.unanswered  # the server drops a second answer
            cells, is_known = STATE.verdicts.take(self), False
            try:
                kind = type(request).__name__
                is_known = answer(asked, token, kind, error, STATE.interrupted, cells, unknown, failures) and is_awaited
            finally:
                if not is_known:
                    STATE.verdicts.give_back()
            if outermost:
                STATE.outbox.release()

    return handle_message


def _merge_own_commands(merge):
    def merge_own_commands(waiting):
        """
        Merges only commands that come from the kernel itself. marimo's merged command has the token of one of the
        commands, or a new token. So if a command of the server were merged, it would be carried out and never
        answered.
        """
        groups = itertools.groupby(waiting, key=lambda command: command.token in STATE.asked)
        return [one for is_asked, group in groups for one in (group if is_asked else merge(list(group)))]

    return merge_own_commands


def _save_widgets():
    """Sends the state of widgets before the end of a command that may have run cells, so that both are saved together."""
    try:
        too_large = STATE.outbox.save_widgets()
    except Exception:  # a widget may give its state any shape; only exports lack it
        return
    for cell_id, size in too_large:
        if cell_id is not None:
            reason = f"its state takes {size / 2**20:.1f} MiB, and a notebook keeps {MAX_SAVED_BYTES >> 20} MiB of all widgets."
            sendable.warn(cell_id, "In reports, a widget", reason)


def _find_unknown(request):
    """
    Returns the elements of a command that exist neither in the notebook nor in an app in it. marimo ignores values
    for them.
    """
    if not isinstance(request, commands.UpdateUIElementCommand):
        return None
    return [i for i in request.object_ids if not _has_element(get_context(), i)]


def _has_element(context, element):
    try:
        context.ui_element_registry.get_object(element)
        return True
    except (KeyError, AssertionError):  # marimo asserts that the element's object still exists
        return any(_has_element(child, element) for child in context.children)


def _prepare(kernel, request):
    if isinstance(request, commands.CreateNotebookCommand):
        kernel.ui_initializers.update(request.set_ui_element_value_request.ids_and_values)  # without autoRun marimo would drop these values
    elif isinstance(request, commands.ModelCommand):
        if isinstance(request.message, commands.ModelUpdateMessage):
            STATE.outbox.note_write(request.model_id, request.message, request.buffers)
    elif isinstance(request, commands.DeleteCellCommand):
        STATE.unparsable.pop(request.cell_id, None)
    elif isinstance(request, commands.EditCellsCommand):  # marimo ignores code of cells that it has not seen
        kernel._uninstantiated_execution_requests.update(
            (cell_id, commands.ExecuteCellCommand(cell_id=cell_id, code=code))
            for cell_id, code in request.codes.items()
            if cell_id not in kernel.graph.cells
        )


def _register_pending(kernel):
    """Puts opened or edited cells that were not run into the graph, as stale cells, so that
    their errors and variables are known."""
    if pending := list(kernel._uninstantiated_execution_requests.values()):
        with kernel.lock_globals():
            kernel.mutate_graph(pending, [], cells_starting_stale={request.cell_id for request in pending})


def _mutate_graph(mutate):
    def mutate_graph(self, execution_requests, deletion_requests, cells_starting_stale=None):
        if not get_context().is_embedded():
            variables.follow(self.graph)
        result = mutate(self, execution_requests, deletion_requests, cells_starting_stale)
        for request in (*execution_requests, *deletion_requests):
            STATE.unparsable.pop(request.cell_id, None)
        STATE.unparsable.update((i, errors) for i, errors in self.errors.items() if i not in self.graph.cells)
        return result

    return mutate_graph


def _close_log_files():
    """Closes the log file that marimo keeps in the server's home, which no kernel may hold open."""
    for logger in _loggers._LOGGERS.values():
        for handler in [handler for handler in logger.handlers if isinstance(handler, logging.FileHandler)]:
            logger.removeHandler(handler)
            handler.close()


class NoAnswers:
    """Replaces the queue of answers to input() and to a debugger's prompt: no answer can come, and waiting would block
    the session until a cancel."""

    def get(self):
        raise EOFError("nobody can answer input() or a debugger here")


def serve(outbox, frames, interrupts, ready, user_config, app_metadata, configs, begin_work):
    """Reports `ready`, then runs the kernel until stop-kernel. `frames` is consumed in a thread of its own. `begin_work` is
    called before the first command."""
    STATE.outbox, STATE.interrupts, STATE.begin_work = outbox, interrupts, begin_work
    copies.watch()
    calls = Calls(outbox)
    server_channel.provide(calls.ask)
    outbox.say(op="bridge-ready", **ready)
    queues = {CONTROL: ControlQueue(lambda: bool(STATE.unanswered), answer_silence), UI: queue.Queue(), COMPLETION: queue.Queue()}
    threading.Thread(target=fill_queues, args=(queues, frames, calls), daemon=True).start()
    runtime.launch_kernel(  # it calls setsid(), and dies if the process already leads a session
        control_queue=queues[CONTROL],
        set_ui_element_queue=queues[UI],
        completion_queue=queues[COMPLETION],
        input_queue=NoAnswers(),
        stream_queue=outbox,
        socket_addr=None,
        is_edit_mode=True,  # run mode forces autorun and hides errors; the server refuses edits itself
        configs=configs,
        app_metadata=app_metadata,
        user_config=user_config,
        virtual_file_storage=None,
        redirect_console_to_browser=True,
        log_level=30,
        is_ipc=True,
        # marimo would probe with kill(pid, 0), and take EPERM (another uid, Landlock) for the death of the process
        parent_pid=None,
    )
