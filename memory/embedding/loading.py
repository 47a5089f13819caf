"""The embedder of this process, by the dotted path of its class.

Relies on the class being callable without arguments. Nothing is loaded before the first request for it.
"""

import importlib
import threading
from collections.abc import Callable
from typing import cast

from memory.embedding.contract import Embedder
from memory.embedding.deadline import DeadlineEmbedder

_loaded: dict[tuple[str, float], DeadlineEmbedder] = {}
_loading = threading.Lock()


def embedder_from(dotted_path: str, timeout_seconds: float) -> Embedder:
    """The embedder made by `package.module.Class()`, held to `timeout_seconds` a call.

    The same object for the same arguments in the whole process; safe from any thread. Raises
    EmbedderCorrupt when its files are not the expected ones, ImportError for a path that names nothing.
    """
    wanted = (dotted_path, timeout_seconds)
    with _loading:
        if wanted not in _loaded:
            _loaded[wanted] = DeadlineEmbedder(_maker(dotted_path)(), timeout_seconds)
        return _loaded[wanted]


def _maker(dotted_path: str) -> Callable[[], Embedder]:
    module_path, _, name = dotted_path.rpartition(".")
    if not module_path:
        raise ImportError(f"{dotted_path!r} is not a dotted path to a class")
    try:
        return cast("Callable[[], Embedder]", getattr(importlib.import_module(module_path), name))
    except AttributeError as missing:
        raise ImportError(f"{module_path} has no {name}") from missing
