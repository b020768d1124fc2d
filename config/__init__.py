"""Where the processes are put together: settings, Celery, URLs, embedded servers, the dev stack.

Guarantees that importing this package loads neither Django nor Celery, so that `config.embedded`
serves tests and scripts too; `celery -A config` finds `config.celery` by itself.
Leaves the business to `jobs`, operating to `ops_console` and execution to `kernel`.
"""
