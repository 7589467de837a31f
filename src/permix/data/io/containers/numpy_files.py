"""NumPy's ``.npy`` and scipy's sparse ``.npz`` files, read without trusting them.

Nothing is unpickled, and what a header declares is held against the size of the file before memory is taken.
"""

from __future__ import annotations

import math
import os
import zipfile
import zlib
from typing import IO, Any

import numpy as np

from permix.data.io.text_files import PathLike, check_file
from permix.data.labels import Array
from permix.errors import FileFormatError
from permix.files import check_sizes, too_large, unpacking_limit

_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_npy(path: PathLike) -> Array:
    """Read one array of numbers or text."""
    check_file(path)
    try:
        with open(path, "rb") as handle:
            _check_header(handle, os.fstat(handle.fileno()).st_size)
            handle.seek(0)
            return np.lib.format.read_array(handle, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise FileFormatError(f"{path}: not a .npy file of numbers, or damaged ({error})", path) from error


def read_sparse(path: PathLike) -> Any:
    """Read a sparse matrix that ``scipy.sparse.save_npz`` wrote."""
    import scipy.sparse

    check_file(path)
    try:
        with open(path, "rb") as handle, zipfile.ZipFile(handle) as archive:
            check_sizes(archive, os.fstat(handle.fileno()).st_size, unpacking_limit())
            for info in archive.infolist():
                if info.filename.endswith(".npy"):
                    with archive.open(info) as member:
                        _check_header(member, info.file_size)
            if "format.npy" not in archive.namelist():
                raise FileFormatError(
                    f"{path}: no sparse matrix in it; write it with scipy.sparse.save_npz(path, matrix)", path
                )
        matrix = scipy.sparse.load_npz(path)
        # Whatever is done with it takes a number for every row and for every column.
        if matrix.ndim != 2 or 8 * sum(matrix.shape) > unpacking_limit():
            raise FileFormatError(too_large(unpacking_limit(), f"with shape {matrix.shape} "))
        if hasattr(matrix, "check_format"):
            matrix.check_format(full_check=True)
        if matrix.dtype.kind not in "biuf":
            raise FileFormatError(f"{path}: values of type {matrix.dtype} are no numbers", path)
    except FileFormatError as error:
        if error.path is not None:
            raise
        raise FileFormatError(f"{path}: {error}", path) from error.__cause__
    except (
        *(zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, LookupError, TypeError),
        *(AttributeError, OverflowError, RuntimeError, MemoryError),
    ) as error:
        reason = str(error) or type(error).__name__
        raise FileFormatError(f"{path}: not a sparse matrix, or damaged ({reason})", path) from error
    return matrix


def _check_header(stream: IO[bytes], n_bytes: int) -> None:
    """Refuse a header that declares more than ``n_bytes`` hold, or that is none."""
    try:
        version = np.lib.format.read_magic(stream)
        shape, _, dtype = _HEADERS[version](stream)
    except Exception as error:  # NumPy parses the header as Python: anything may come out of a damaged one
        raise ValueError(f"no header of an array: {str(error)[:200] or type(error).__name__}") from error
    if dtype.hasobject:
        raise ValueError("the array holds Python objects; save numbers or text")
    if math.prod(shape) * dtype.itemsize > n_bytes - stream.tell():
        raise ValueError(f"the header declares shape {shape}, more than the {n_bytes} bytes there are")
