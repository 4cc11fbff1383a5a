"""Snakemake executor for Modal: GPU jobs run in Modal sandboxes, everything else here, and the same files appear.

Imported by every snakemake that finds it installed, so nothing heavy and no Modal SDK is imported here.
"""

from snakemake_interface_executor_plugins.settings import CommonSettings

from snakemake_executor_plugin_modal.executor import Executor
from snakemake_executor_plugin_modal.settings import ExecutorSettings

__all__ = ["Executor", "ExecutorSettings", "common_settings"]

common_settings = CommonSettings(
    non_local_exec=True,
    implies_no_shared_fs=True,
    job_deploy_sources=True,
    can_transfer_local_files=True,
    pass_default_storage_provider_args=False,
    pass_envvar_declarations_to_cmd=False,
    auto_deploy_default_storage_provider=False,
    init_seconds_before_status_checks=0,
)
