"""What only a worker process does: import activity code and register definitions.

Guarantees: each installed app with a `workflows` module offering `definitions()` is served, so a
team adds a workflow by adding that module to its app. Leaves to others: publishers (`jobs.runtime`
registers plans), and when to call this (`jobs.wakeups`, `config.celery`).
"""

from importlib import import_module
from weakref import WeakSet

from django.apps import apps
from django.utils.module_loading import module_has_submodule

from kernel import Definition, Kernel

_served: WeakSet[Kernel] = WeakSet()


def register_definitions(kernel: Kernel) -> None:
    """Register every definition of the installed apps. On repeat for the same kernel: nothing.

    Raises:
        DefinitionError: a definition contradicts itself or a plan of the same type.
    """
    if kernel in _served:
        return
    for definition in installed_definitions():
        kernel.register(definition)
    _served.add(kernel)


def installed_definitions() -> list[Definition]:
    """Collect the definitions of the installed apps, in the order of INSTALLED_APPS."""
    found: list[Definition] = []
    for app in apps.get_app_configs():
        if app.module is not None and module_has_submodule(app.module, "workflows"):
            module = import_module(f"{app.name}.workflows")
            if (offer := getattr(module, "definitions", None)) is not None:
                found.extend(offer())
    return found
