"""NumPy's own files: what they declare is held against what they hold."""

from __future__ import annotations

import io
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from permix.data.io.containers.numpy_files import read_npy, read_sparse
from permix.errors import FileFormatError


def npy(header: str, body: bytes = bytes(64)) -> bytes:
    text = header.encode("latin-1") + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + body


HOSTILE = {
    "10^11 rows": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (100000000000, 5), }"),
    "sizes that overflow": npy(
        "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }"
    ),
    "an open bracket": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3, "),
    "an open string": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), 'x"),
    "no Python": npy("{'descr': '<f8' 'fortran_order'; False"),
    "brackets in brackets": npy("(" * 9000),
    "a null": npy("\0"),
    "Python objects": npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", b"cos\nsystem\n."),
    "another version": b"\x93NUMPY\x09\x00" + bytes(100),
    "no header": b"\x93NUMPY",
    "nothing": b"",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_headers_are_refused_before_memory_is_taken(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(HOSTILE[name])
    (tmp_path / "a.npz").write_bytes(npz(HOSTILE[name]))
    tracemalloc.start()
    try:
        for read, file in ((read_npy, path), (read_sparse, tmp_path / "a.npz")):
            with pytest.raises(FileFormatError, match="damaged") as caught:
                read(file)
            assert caught.value.path == str(file)
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()


def npz(member: bytes) -> bytes:
    import zipfile

    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.npy", member)
        archive.writestr("format.npy", npy("{'descr': '|S3', 'fortran_order': False, 'shape': (), }", b"coo"))
    return stream.getvalue()


@pytest.mark.parametrize(
    "array", [np.arange(6.0).reshape(2, 3), np.asfortranarray(np.eye(3)), np.array(["ab"])]
)
def test_honest_arrays_come_back(tmp_path: Path, array: np.ndarray) -> None:
    np.save(tmp_path / "a.npy", array)
    np.testing.assert_array_equal(read_npy(tmp_path / "a.npy"), array)


def test_every_cut_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(10.0))
    whole = (tmp_path / "a.npy").read_bytes()
    for length in range(0, len(whole), 7):
        (tmp_path / "cut.npy").write_bytes(whole[:length])
        with pytest.raises(FileFormatError):
            read_npy(tmp_path / "cut.npy")


def test_missing_files_are_just_that(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_npy(tmp_path / "nothing.npy")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read_sparse(tmp_path)
