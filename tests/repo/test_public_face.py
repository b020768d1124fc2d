"""The names other teams import are a contract: additions are deliberate, removals never happen."""

import subprocess
import sys

import kernel

PUBLIC = {
    *("Kernel", "KernelConfig", "Priority"),
    *("Plan", "Step", "Definition", "RetryPolicy", "OnFailed"),
    *("ActivityContext", "FinalizerContext", "Sleep", "WaitForSignal", "Yield"),
    *("WorkflowInstance", "StartResult", "Signal"),
    *("KernelError", "UsageError", "DefinitionError", "UnknownWorkflow", "NotAvailable"),
    *("NotAReplicaSet", "InvalidValue", "ValueTooLarge", "NotFound", "Unavailable"),
    *("StoreUnavailable", "HintsUnavailable", "InvariantViolation"),
    *("NonRetryable", "StepTimeout", "WorkflowCanceled"),
}


def test_the_public_names_are_all_there() -> None:
    assert set(kernel.__all__) >= PUBLIC
    assert [name for name in kernel.__all__ if not hasattr(kernel, name)] == []


def test_importing_the_kernel_loads_no_framework() -> None:
    code = (
        "import sys, kernel;"
        "print(sorted({'django', 'celery', 'kombu', 'rest_framework'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_api_and_beat_load_no_activity() -> None:
    code = (
        "import sys, django; django.setup(); import jobs.api.urls, jobs.wakeups, config.celery;"
        "print(sorted(name for name in sys.modules if name.startswith("
        "('jobs.activities', 'jobs.workflows'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
