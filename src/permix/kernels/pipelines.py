# mypy: ignore-errors
"""Numba's compiler in two forms: for kernels that Python calls, and for those that only kernels call.

Left alone, Numba turns every function into machine code of its own, with code that converts Python's objects
and code for C's callers, and optimizes it; then it links all of it, as LLVM's intermediate code, into every
caller and optimizes it again there, up through the whole chain of calls. But machine code of a function that
only kernels call is never run. Here such a function ends as intermediate code, without wrappers, and what
Python calls is optimized and turned into machine code once, with all that it calls: half of all compilation.

Both forms run with the same flags, since Numba compiles its own functions (``np.zeros``, ...) once for each
set of flags.
"""

from __future__ import annotations

import llvmlite.binding as llvm
from numba.core import lowering
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, CompileResult, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.environment import lookup_environment
from numba.core.typed_passes import NativeLowering

from permix.kernels.generators import read_from_capsules

FLAGS = {"nogil": True, "no_cfunc_wrapper": True, "no_cpython_wrapper": True}
INNER = "inner"


class InnerLibrary(JITCodeLibrary):
    """Intermediate code for kernels to link with; no machine code, and nothing that Python could call."""

    @property
    def codegen(self):
        # Only what makes machine code ready to be called asks for this, to set its environment.
        return self

    def set_env(self, name, environment):
        """Do nothing: what is linked with this sets all environments in its own machine code."""

    def get_pointer_to_function(self, name):
        """Return 0, Numba's sign that there is no such machine code."""
        self._ensure_finalized()
        return 0

    def _optimize_final_module(self):
        """Leave that to the caller's caller: it optimizes everything that is linked."""

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def serialize_using_object_code(self):
        """Return what is kept on disk."""
        return self.name, INNER, self._get_module_for_linking().as_bitcode()

    @classmethod
    def made(cls, target_context, name):
        library = target_context.codegen().create_library(name)
        library.__class__ = cls
        return library


@register_pass(mutates_CFG=True, analysis_only=False)
class InnerLowering(NativeLowering):
    """Ends with intermediate code."""

    _name = "inner_lowering"

    def run_pass(self, state):
        state.library = InnerLibrary.made(state.targetctx, state.func_id.func_qualname)
        state.library.enable_object_caching()
        return super().run_pass(state)


class _LowerWithWrapper(lowering.Lower):
    def lower(self):
        read_from_capsules()
        super().lower()
        self.create_cpython_wrapper(release_gil=True)


@register_pass(mutates_CFG=True, analysis_only=False)
class CalledLowering(NativeLowering):
    """Ends with machine code that Python can call."""

    _name = "called_lowering"

    @property
    def lowering_class(self):
        return _LowerWithWrapper

    def run_pass(self, state):
        changed = super().run_pass(state)
        for variable in state.library._final_module.global_variables:
            if variable.name.startswith("_ZN08NumbaEnv"):
                environment = lookup_environment(variable.name)
                if environment is not None:
                    state.library.codegen.set_env(variable.name, environment)
        return changed


class _Compiler(CompilerBase):
    lowering: type

    def define_pipelines(self):
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.passes = [
            (self.lowering if each is NativeLowering else each, text) for each, text in pipeline.passes
        ]
        pipeline._finalized = False
        pipeline.finalize()
        return [pipeline]


class InnerCompiler(_Compiler):
    """For what kernels call."""

    lowering = InnerLowering


class CalledCompiler(_Compiler):
    """For what Python calls."""

    lowering = CalledLowering


def rebuild(target_context, kept):
    """Return what was compiled, from what ``CompileResult._reduce`` made of it."""
    (name, form, code), *others = kept
    if form != INNER:
        return CompileResult._rebuild(target_context, *kept)
    fndesc, environment, signature, objectmode, lifted, annotation, reload_init, referenced = others
    for function in reload_init:
        function()
    library = InnerLibrary.made(target_context, name)
    library._final_module = library._shared_module = llvm.parse_bitcode(code)
    library._finalized = True
    return CompileResult(
        target_context=target_context,
        typing_context=target_context.typing_context,
        library=library,
        environment=environment,
        entry_point=target_context.get_executable(library, fndesc, environment),
        fndesc=fndesc,
        type_annotation=annotation,
        signature=signature,
        objectmode=objectmode,
        lifted=lifted,
        typing_error=None,
        call_helper=None,
        metadata=None,
        reload_init=reload_init,
        referenced_envs=referenced,
    )
