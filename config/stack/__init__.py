"""The whole product in one terminal: servers, web, workers, beat and Flower, for development.

```
Stack.prepare:  data folder ─▶ mongod ─▶ redis ─▶ migrate + schema + access
Stack.run:      web, workers, beat, Flower ─▶ watch: restart what dies ─▶ stop in reverse meaning
stop:           beat ─▶ workers (finish their steps) ─▶ Flower ─▶ web ─▶ redis ─▶ mongod
```

Guarantees: Ctrl-C reaches this process only, never its children, so that the order above holds; a
child that dies is started again, later each time; nothing outlives this process (on Linux).
Leaves production to `docker-compose.yml` or whatever runs the same commands.
"""

from config.stack.services import StackOptions
from config.stack.spec import ProcessSpec
from config.stack.stack import Access, Stack, StackFailed
from config.stack.supervisor import Supervisor
from config.stack.terminal import Terminal

__all__ = [
    "Access",
    "ProcessSpec",
    "Stack",
    "StackFailed",
    "StackOptions",
    "Supervisor",
    "Terminal",
]
