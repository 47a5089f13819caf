"""The embedded stack: everything the product needs on one machine, started by one command.

Plain Python that imports no Django, so that it can start before any setting is read. Start at
`EmbeddedServices` for tests and tools, at `__main__` for the commands.
"""

from config.stack.errors import StackError
from config.stack.provisioning import provision
from config.stack.services import EmbeddedServices

__all__ = ["EmbeddedServices", "StackError", "provision"]
