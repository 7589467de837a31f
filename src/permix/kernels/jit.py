"""The one place that says how permix compiles.

Every kernel is a module-level function under ``@kernel``: cached on disk across processes, run
without the GIL, and without ``fastmath`` because minus infinity is meaningful here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import numba
from numba.core import types
from numba.extending import overload

from permix.errors import PermixError
from permix.kernels.compile_cache import ContentCache, note_implementation
from permix.kernels.pipelines import FLAGS, INNER, CalledCompiler, InnerCompiler

F = TypeVar("F", bound=Callable[..., object])


def kernel(function: Callable[..., object]) -> Any:
    """Compile ``function`` on first call; later processes load it from the cache.

    What Python calls and what other kernels call are compiled apart, each when it is first needed.
    """
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        raise PermixError(
            "the environment variable NUMBA_DISABLE_JIT is set, and permix does not work without compiled "
            "code; unset it"
        )
    called = numba.njit(pipeline_class=CalledCompiler, **FLAGS)(function)
    called._cache = ContentCache(function)
    inner = numba.njit(pipeline_class=InnerCompiler, **FLAGS)(function)
    inner._cache = ContentCache(function, INNER)
    template_for = inner.get_call_template

    def once_for_all_constants(arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Let compiled code that calls with constants use what is compiled for variables.

        Left alone, Numba compiles a function once more for every constant that a kernel calls it with.
        """
        return template_for(
            tuple(types.unliteral(kind) for kind in arguments),
            {name: types.unliteral(kind) for name, kind in named.items()},
        )

    called.get_call_template = once_for_all_constants
    called.get_overload = inner.get_overload
    return called


def inlined(function: Callable[..., object]) -> Any:
    """Make ``function`` part of the text of kernels that call it: nothing is compiled for it alone."""
    compiled = numba.njit(pipeline_class=CalledCompiler, inline="always", **FLAGS)(function)
    compiled._cache = ContentCache(function)
    return compiled


def ufunc(function: Callable[..., object]) -> Any:
    """Compile a function of numbers into a NumPy ufunc; compiled code calls it like any other kernel."""
    compiled: Any = numba.vectorize(nopython=True)(function)
    compiled._dispatcher.cache = ContentCache(function, wrapped=True)
    return compiled


def is_instance(numba_type: object, cls: type) -> bool:
    """Say, inside an ``overload``, whether an argument is the NamedTuple ``cls``."""
    return isinstance(numba_type, types.BaseNamedTuple) and numba_type.instance_class is cls


def implements(declared: Callable[..., object], of: type, argument: str = "stats") -> Callable[[F], F]:
    """Register a plain function as what ``declared`` does for the NamedTuple ``of``.

    ``declared`` is a contract: a Python function that compiled code calls by name. Numba looks at the type of
    one argument, ``stats`` unless another is named, and compiles the implementation registered for that type.
    """
    signature = inspect.signature(declared)
    position = list(signature.parameters).index(argument)

    def register(implementation: F) -> F:
        def choose(*arguments: object) -> F | None:
            return implementation if is_instance(arguments[position], of) else None

        # Numba compares the signatures of declaration and implementation, names included.
        choose.__signature__ = signature
        overload(declared, jit_options={"pipeline_class": InnerCompiler, **FLAGS})(choose)
        note_implementation(of, implementation)
        return implementation

    return register
