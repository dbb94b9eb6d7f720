"""Whether the installed marimo is the one that this host was written for.

Everything here but `marimo.__version__` is private to marimo and may change with any release. PRIVATE names each private module
that the host imports, with the members it uses; a test keeps the list complete. Read it first when a new marimo is to be
supported.
"""

import importlib
import importlib.util
import inspect

import marimo

SUPPORTED = ("0.25.2",)
PRIVATE = {
    "marimo": "_loggers._LOGGERS _tracer.kernel_tracer _tracer.MockTracer",
    "marimo._ast": "codegen._format_arg codegen._extract_header_comments codegen.indent_text codegen.INDENT",
    "marimo._ast.app": "InternalApp",
    "marimo._ast.app_config": "_AppConfig",
    "marimo._ast.cell": """
        CellConfig.configure CellImpl.imported_namespaces CellImpl.markdown CellImpl.toplevel_variable CellOutput
        CellStaleState RunResultStatus RuntimeState CellImpl.set_stale CellImpl.set_run_result_status
        CellImpl._get_sqls""",
    "marimo._ast.cell_id": "CellIdGenerator.create_cell_id",
    "marimo._ast.compiler": "compile_cell",
    "marimo._ast.load": "load_notebook_ir",
    "marimo._ast.parse": "split_source_lines",
    "marimo._code_mode": "_context.compile_cell",
    "marimo._code_mode._context": """
        AsyncCodeModeContext.__aenter__ AsyncCodeModeContext.__aexit__ AsyncCodeModeContext._require_entered""",
    "marimo._code_mode._plan": "_MoveOp",
    "marimo._config.config": "MarimoConfig DEFAULT_CONFIG",
    "marimo._convert.converters": "MarimoConvert.from_py MarimoConvert.from_md MarimoConvert.from_ir",
    "marimo._convert.ipynb": "from_ir to_ir",
    "marimo._convert.ipynb.from_ir": "convert_from_ir_to_ipynb",
    "marimo._convert.markdown": "from_ir to_ir",
    "marimo._entrypoints": "registry.entry_points registry.get_entry_points",
    "marimo._environments": "script_metadata",
    "marimo._export.exporter": "Exporter.export_as_html Exporter._inline_public_files Exporter._inline_virtual_files",
    "marimo._export.requests": "HTMLExportRequest",
    "marimo._export.serialization": "serialize_notebook_snapshot",
    "marimo._lint.validate_graph": "check_for_errors",
    "marimo._messaging": """
        notification_utils.serialize_kernel_message streams.buffered_writer streams._forward_os_stream
        tracebacks._highlight_traceback streams.Watcher.pause streams.ThreadSafeStdout._write_with_mimetype
        streams.ThreadSafeStderr._write_with_mimetype streams.ThreadSafeStream.flush_console streams.deque""",
    "marimo._messaging.cell_output": "CellChannel CellOutput.errors",
    "marimo._messaging.console_output_worker": "TIMEOUT_S ConsoleMsg _write_console_output",
    "marimo._messaging.context": "HTTP_REQUEST_CTX RUN_ID_CTX execution_id_for",
    "marimo._messaging.errors": "MultipleDefinitionError",
    "marimo._messaging.msgspec_encoder": "encode_json_bytes",
    "marimo._messaging.notification": "CellNotification ModelLifecycleNotification VariablesNotification",
    "marimo._messaging.notification_utils": """
        CellNotificationUtils.broadcast_output CellNotificationUtils.broadcast_console_output
        CellNotificationUtils.maybe_truncate_output broadcast_notification""",
    "marimo._messaging.tracebacks": "_highlight_traceback",
    "marimo._output": "formatting.try_format formatting.FormattedOutput formatting.is_callable_method",
    "marimo._output.formatters": "repr_formatters.is_callable_method",
    "marimo._output.md": "md",
    "marimo._plugins.ui._core.ui_element": """
        UIElement._update UIElement._convert_value""",
    "marimo._plugins.ui._impl.input": "FileUploadResults file._convert_value",
    "marimo._runtime": """
        commands.CommandMessage commands.BatchableCommand commands.OutOfBandCommand
        commands.CreateNotebookCommand commands.DeleteCellCommand commands.EditCellsCommand
        commands.ExecuteCellCommand commands.ExecuteCellsCommand commands.ModelCommand commands.ModelUpdateMessage
        runtime.launch_kernel runtime.restore_signals
        kernel_lifecycle.threaded_queue_reader runtime.start_parent_poller runtime.compile_cell runtime.VariablesNotification
        runtime.broadcast_notification runtime.handlers.construct_sigterm_handler
        runtime.handlers.construct_interrupt_handler""",
    "marimo._runtime.cell_lifecycle_registry": "CellLifecycleRegistry.dispose",
    "marimo._runtime.commands": "AppMetadata",
    "marimo._runtime.context": "get_context",
    "marimo._runtime.context.kernel_context": "KernelRuntimeContext.active_scheduler",
    "marimo._cli.parse_args": "parse_args",
    "marimo._runtime.context.types": "safe_get_context",
    "marimo._runtime.control_flow": "MarimoStopError",
    "marimo._runtime.dataflow": "DirectedGraph.register_cell DirectedGraph.delete_cell DirectedGraph.ancestors edges.get_referring_cells",
    "marimo._runtime.dataflow.definitions": """
        DefinitionRegistry.register_definition DefinitionRegistry.unregister_definitions
        DefinitionRegistry.get_multiply_defined DefinitionRegistry._conflict_key""",
    "marimo._runtime.dataflow.graph": "DirectedGraph.is_disabled",
    "marimo._runtime.dataflow.topology": """
        MutableGraphTopology.ancestors MutableGraphTopology.descendants MutableGraphTopology.add_node
        MutableGraphTopology.remove_node""",
    "marimo._runtime.packages.module_registry": "ModuleRegistry.modules",
    "marimo._runtime.exceptions": "MarimoRuntimeException",
    "marimo._runtime.execution": "ExecutionAttempt.start",
    "marimo._runtime.executor.executor": "DefaultExecutor.execute_cell_async",
    "marimo._runtime.functions": "Function.__call__",
    "marimo._runtime.runner": """
        cell_runner.unwrap_user_exception hooks_post_execution.format_exception_message
        hooks_post_execution.POST_EXECUTION_HOOKS hooks_post_execution._broadcast_outputs
        hooks_post_execution.get_datasets_from_variables hooks_post_execution.get_engines_from_variables
        hooks_post_execution.get_storage_backends_from_variables hooks_post_execution._reset_matplotlib_context
        hooks_on_finish.ON_FINISH_HOOKS hooks_pre_execution.PRE_EXECUTION_HOOKS hooks_preparation.PREPARATION_HOOKS""",
    "marimo._runtime.runner.cell_runner": """
        Runner.run Runner.run_all Runner.interrupted Runner._finalize_run_result Runner._run_post_execution_hooks""",
    "marimo._runtime.runner.scheduler": "SequentialScheduler.cancel_all SequentialScheduler.interrupted",
    "marimo._runtime.runtime": """
        Kernel.handle_message Kernel._run_cells Kernel._run_cells_internal Kernel._propagate_kernel_errors Kernel.lock_globals
        Kernel.mutate_graph""",
    "marimo._runtime.scratch": "SCRATCH_CELL_ID",
    "marimo._runtime.utils": "set_ui_element_request_manager.merge_batchable_commands",
    "marimo._schemas.export_options": "HTMLExportOptions",
    "marimo._schemas.serialization": "AppInstantiation CellDef Header NotebookSerializationV1 SetupCell UnparsableCell",
    "marimo._session.state.session_view": "SessionView.add_notification",
    "marimo._types.ids": "CellId_t",
    "marimo._utils.signals": "SigintHandler.defer SigintHandler.__call__",
    "marimo._utils.site_packages": "_getsitepackages",
}
LAUNCH_PARAMETERS = """control_queue set_ui_element_queue completion_queue input_queue stream_queue socket_addr
    is_edit_mode configs app_metadata user_config virtual_file_storage redirect_console_to_browser log_level is_ipc
    parent_pid"""


def find_missing() -> list[str]:
    """Returns the private names that this host cannot find; empty when this marimo fits. Slow: imports all of them."""
    missing = []
    for module, names in PRIVATE.items():
        try:
            found = importlib.import_module(module)
            _import_parts(module, names)
        except ImportError as error:
            missing.append(f"{module} ({error})")
            continue
        missing += [f"{module}.{name}" for name in names.split() if not _has(found, name)]
    return missing or _find_changed()


def _import_parts(module, names):
    """Imports the submodules of a package, because they become its members only then."""
    for name in {name.split(".")[0] for name in names.split()}:
        if importlib.util.find_spec(module).submodule_search_locations and importlib.util.find_spec(f"{module}.{name}"):
            importlib.import_module(f"{module}.{name}")


def _has(found, dotted):
    for name in dotted.split("."):
        if not hasattr(found, name):
            return False
        found = getattr(found, name)
    return True


def _find_changed():
    """Returns the private names that still exist but have changed their shape."""
    from marimo._runtime import runtime

    launch = set(inspect.signature(runtime.launch_kernel).parameters)
    changed = [f"launch_kernel({name})" for name in LAUNCH_PARAMETERS.split() if name not in launch]
    if "cells_starting_stale" not in inspect.signature(runtime.Kernel.mutate_graph).parameters:
        changed.append("Kernel.mutate_graph(cells_starting_stale)")
    if "_uninstantiated_execution_requests" not in inspect.getsource(runtime.Kernel.__init__):
        changed.append("Kernel._uninstantiated_execution_requests")
    return changed


def is_supported() -> bool:
    return marimo.__version__ in SUPPORTED
