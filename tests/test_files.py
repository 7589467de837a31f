"""The archive: what goes in comes out, and nothing a stranger sends does harm."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import signal
import stat
import subprocess
import sys
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from permix import files
from permix.errors import DataError, FileFormatError, PermixWarning
from permix.files import (
    atomic_writer,
    parse_json,
    read_archive,
    read_unpacked,
    unpacking_limit,
    write_archive,
)
from tests.every_run import first_in_every_run

ARRAYS = {
    "labels": np.array([[0, 1, 2], [2, 1, 0]], np.uint8),
    "posterior/log_joint": np.array([-1.5, np.nan, np.inf]),
    "keep": np.array([True, False]),
    "items": np.array(["Žižkov", "鮪", "", "😀 tuna"]),
    "scalar": np.array(3, np.int64),
    "empty": np.zeros((0, 4), np.float32),
    "negative": np.array([-(2**62), 5]),
}
MANIFEST = {"kind": "test", "names": ["Žižkov", "鮪"], "nested": {"scale": 0.1, "big": 2**100, "none": None}}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "fit.permix"
    write_archive(path, MANIFEST, ARRAYS)
    return path


def same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    return list(a) == list(b) and all(
        a[name].dtype == b[name].dtype
        and a[name].shape == b[name].shape
        and a[name].tobytes() == b[name].tobytes()
        for name in a
    )


# What goes in comes out.


def test_round_trip(archive: Path) -> None:
    manifest, arrays = read_archive(archive)
    assert same(arrays, ARRAYS)
    assert {key: manifest[key] for key in MANIFEST} == MANIFEST
    assert manifest["format"] == "permix"
    assert manifest["version"] == 2
    assert all(array.flags.aligned and array.flags.writeable for array in arrays.values())
    text = zipfile.ZipFile(archive).read("manifest.json").decode("utf-8")
    assert "Žižkov" in text, "text must stay readable"


def test_same_content_same_bytes(archive: Path, tmp_path: Path) -> None:
    write_archive(tmp_path / "again", MANIFEST, ARRAYS)
    assert (tmp_path / "again").read_bytes() == archive.read_bytes()


def test_layouts_and_byte_orders_are_normalized(tmp_path: Path) -> None:
    plain = np.arange(12.0).reshape(3, 4)
    tricky = {"f": np.asfortranarray(plain), "swapped": plain.astype(">f8"), "strided": plain[::2, ::-1]}
    tricky["text"] = np.array(["ab", "c"], ">U2")
    write_archive(tmp_path / "a", {"kind": "test"}, tricky)
    arrays = read_archive(tmp_path / "a")[1]
    for name, array in tricky.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype.isnative


def test_empty_strings(tmp_path: Path) -> None:
    write_archive(tmp_path / "a", {"kind": "test"}, {"none": np.array([], str), "blank": np.array(["", ""])})
    arrays = read_archive(tmp_path / "a")[1]
    assert arrays["none"].shape == (0,)
    assert arrays["blank"].tolist() == ["", ""]


def test_numpy_reads_the_arrays(archive: Path) -> None:
    with np.load(archive, allow_pickle=False) as content:
        np.testing.assert_array_equal(content["arrays/labels"], ARRAYS["labels"])


@pytest.mark.parametrize(
    ("manifest", "arrays", "reason"),
    [
        ({}, {"a": np.array([object()])}, "Python objects"),
        ({}, {"a": np.array([1 + 2j])}, "complex"),
        ({}, {"a": np.array([b"bytes"])}, "type"),
        ({}, {"a": np.array(["2020-01-01"], "datetime64[D]")}, "datetime64"),
        ({}, {"a": np.zeros(2, [("x", "f8")])}, "type"),
        ({}, {"a": np.array(["\ud800"])}, "surrogates"),
        ({}, {"../a": np.zeros(1)}, "array name"),
        ({}, {"/a": np.zeros(1)}, "array name"),
        ({}, {"": np.zeros(1)}, "array name"),
        ({"x": float("nan")}, {}, "JSON"),
        ({"x": np.float64(1.0), "y": {1, 2}}, {}, "JSON"),
        ({"x": "\ud800"}, {}, "JSON"),
        ({"kind": 3}, {}, "kind"),
        ({"version": 3}, {}, "version"),
    ],
)
def test_what_cannot_be_stored_is_refused(tmp_path: Path, manifest: dict, arrays: dict, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        write_archive(tmp_path / "a", {"kind": "test", **manifest}, arrays)
    assert list(tmp_path.iterdir()) == []


def test_kind(archive: Path) -> None:
    assert read_archive(archive, kind="test")[0]["kind"] == "test"
    with pytest.raises(FileFormatError, match="of kind 'test', not 'model'"):
        read_archive(archive, kind="model")


def test_missing_file_is_just_that(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_archive(tmp_path / "nothing")


# Written whole or not at all.


def test_failed_write_leaves_the_old_file(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = archive.read_bytes()

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", fail)
    with pytest.raises(OSError, match="No space left") as caught:
        write_archive(archive, {"kind": "new"}, {})
    assert caught.value.filename == str(archive)
    assert archive.read_bytes() == before
    assert list(archive.parent.iterdir()) == [archive]


def test_interrupted_writer_leaves_nothing(tmp_path: Path) -> None:
    def write_half() -> None:
        with atomic_writer(tmp_path / "a") as handle:
            handle.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="no locks")
def test_a_file_that_is_removed_before_it_is_locked_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by another process that takes it for a leftover."""
    lock, removed = files._try_lock, []

    def late(handle: io.BufferedWriter) -> bool:
        if not removed:
            removed.append(handle.name)
            os.unlink(handle.name)
        return lock(handle)

    monkeypatch.setattr(files, "_try_lock", late)
    with atomic_writer(tmp_path / "a") as handle:
        handle.write(b"whole")
    assert len(removed) == 1
    assert (tmp_path / "a").read_bytes() == b"whole"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_what_a_killed_write_leaves_is_removed_by_the_next(tmp_path: Path) -> None:
    """A process is killed while it writes; one that still writes to the same name is left alone."""
    code = (
        "import sys, time; from permix.files import atomic_writer\n"
        "with atomic_writer(sys.argv[1]) as handle:\n"
        "    handle.write(b'half'); handle.flush(); print('half', flush=True); sys.stdin.read()"
    )
    target = tmp_path / "a[1]*.permix"
    (tmp_path / ".a[1]*.permix.notes.tmp").write_bytes(b"somebody's own")
    (tmp_path / ".b.permix.1-1.tmp").write_bytes(b"of another file")
    command = [sys.executable, "-c", code, str(target)]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for process in processes:
            assert process.stdout.readline() == b"half\n"
        processes[0].send_signal(signal.SIGKILL)
        processes[0].wait()
        assert len(list(tmp_path.glob(".*.tmp"))) == 4
        write_archive(target, {"kind": "test"}, {})
        left = sorted(path.name for path in tmp_path.glob(".*.tmp"))
        assert len(left) == 3
        assert not any(f".{processes[0].pid}-" in name for name in left)
        processes[1].communicate(b"")  # goes on and ends well
        assert processes[1].returncode == 0
        assert target.read_bytes() == b"half"
    finally:
        for process in processes:
            process.kill()
            process.communicate()


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_permissions_follow_the_umask(archive: Path) -> None:
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(archive.stat().st_mode) == 0o666 & ~mask


# Damage.


def read_bytes(path: Path, content: bytes, **options: object) -> tuple[dict, dict] | None:
    """Read; None when refused as it should be. Anything but FileFormatError propagates."""
    path.write_bytes(content)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return read_archive(path, **options)
    except FileFormatError as error:
        refusal = error
    assert str(path) in str(refusal)
    assert refusal.path == str(path)
    return None


def test_every_truncation_is_refused(archive: Path, tmp_path: Path) -> None:
    content = archive.read_bytes()
    for length in range(len(content)):
        assert read_bytes(tmp_path / "cut", content[:length]) is None, length


@pytest.mark.parametrize("n_trials", first_in_every_run([800, 3000]))
def test_random_damage_is_refused_or_harmless(archive: Path, tmp_path: Path, n_trials: int) -> None:
    """Either an error, or (where the zip has bytes without meaning) the content as it was."""
    content = archive.read_bytes()
    expected, rng = read_archive(archive), np.random.default_rng(20)
    path, n_refused = tmp_path / "damaged", 0
    for trial in range(n_trials):
        damaged = bytearray(content)
        kind = trial % 4
        position = int(rng.integers(len(damaged)))
        if kind == 0:
            damaged[position] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            for place in rng.integers(len(damaged), size=4):
                damaged[place] = int(rng.integers(256))
        elif kind == 2:
            del damaged[position : position + int(rng.integers(1, 20))]
        else:
            damaged[position:position] = rng.bytes(int(rng.integers(1, 20)))
        found = read_bytes(path, bytes(damaged))
        if found is None:
            n_refused += 1
        else:
            assert found[0] == expected[0]
            assert same(found[1], expected[1])
    assert n_refused > n_trials * 2 / 3


def test_damage_to_the_directory_of_the_zip(archive: Path, tmp_path: Path) -> None:
    """The lowest and the highest bit of each of the last 600 bytes, where sizes and offsets are."""
    content, expected = archive.read_bytes(), read_archive(archive)
    for position in range(max(0, len(content) - 600), len(content)):
        for bit in (0, 7):
            damaged = bytearray(content)
            damaged[position] ^= 1 << bit
            found = read_bytes(tmp_path / "damaged", bytes(damaged))
            assert found is None or (found[0] == expected[0] and same(found[1], expected[1]))


@pytest.mark.parametrize("content", [b"", b"PK", b"hello", b"\x00" * 1000, b"PK\x05\x06" + b"\x00" * 18])
def test_other_files(tmp_path: Path, content: bytes) -> None:
    assert read_bytes(tmp_path / "other", content) is None


def test_random_bytes(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    for _ in range(300):
        assert read_bytes(tmp_path / "noise", b"PK\x03\x04" + rng.bytes(int(rng.integers(400)))) is None


# Hostile archives.


def npy(array: np.ndarray, **changes: object) -> bytes:
    """Return an .npy file; ``header`` replaces its header, ``data`` its content."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=True)
    content = buffer.getvalue()
    start = 10 + int.from_bytes(content[8:10], "little")
    header, data = content[10:start], content[start:]
    header = changes.get("header", header)
    data = changes.get("data", data)
    return content[:8] + len(header).to_bytes(2, "little") + header + data


def header(descr: str = "<f8", shape: str = "(3,)", order: str = "False") -> bytes:
    return f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n".encode("latin-1")


def head(*names: str, **changes: object) -> dict[str, object]:
    return {
        "format": "permix",
        "version": 1,
        "permix": "0.1.0",
        "kind": "test",
        "arrays": list(names),
        **changes,
    }


def crafted(path: Path, members: list[tuple[str | zipfile.ZipInfo, bytes]]) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # duplicate names
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members:
                archive.writestr(name, content)
    return path


def one_array(path: Path, content: bytes) -> Path:
    return crafted(path, [("manifest.json", json.dumps(head("a")).encode()), ("arrays/a.npy", content)])


def test_the_crafted_archive_is_good_without_malice(tmp_path: Path) -> None:
    arrays = read_archive(one_array(tmp_path / "a", npy(np.arange(3.0), header=header())))[1]
    assert arrays["a"].tolist() == [0.0, 1.0, 2.0]


def test_unaligned_data_are_aligned(tmp_path: Path) -> None:
    for padding in range(8):
        content = npy(np.arange(3.0), header=header()[:-1] + b" " * padding + b"\n")
        array = read_archive(one_array(tmp_path / "a", content))[1]["a"]
        assert array.flags.aligned
        assert array.tolist() == [0.0, 1.0, 2.0]


class Bomb:
    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return (print, ("executed",))


HOSTILE_ARRAYS = {
    "object array": npy(np.array([{}, []], dtype=object)),
    "pickle": pickle.dumps(Bomb()),
    "pickle behind a header": npy(np.zeros(1), header=header("|O", "(1,)"), data=pickle.dumps(Bomb())),
    "too few data": npy(np.zeros(3), header=header(shape="(4,)")),
    "too many data": npy(np.zeros(3), header=header(shape="(2,)")),
    "huge shape": npy(np.zeros(3), header=header(shape="(100000000000,)")),
    "overflowing shape": npy(np.zeros(0), header=header(shape="(4294967296, 4294967296)")),
    "shape of forty digits": npy(np.zeros(0), header=header(shape="(" + "9" * 40 + ",)")),
    "empty but absurd": npy(np.zeros(0), header=header(shape="(0, 999999999999999999)")),
    "many dimensions": npy(np.zeros(1), header=header(shape="(" + "1, " * 99 + "1)")),
    "negative shape": npy(np.zeros(3), header=header(shape="(-3,)")),
    "shape of floats": npy(np.zeros(3), header=header(shape="(3.0,)")),
    "shape is no tuple": npy(np.zeros(3), header=header(shape="3")),
    "expression": npy(np.zeros(3), header=header(shape="(__import__('os').getpid(),)")),
    "deep header": npy(np.zeros(3), header=b"(" * 60000 + b"\n"),
    "fortran order": npy(np.zeros((2, 2)), header=header(shape="(2, 2)", order="True")),
    "structured": npy(np.zeros(3), header=header("V8")),
    "complex": npy(np.zeros(3), header=header("<c8")),
    "zero-width text": npy(np.zeros(0), header=header("<U0", "(99999,)")),
    "wide text": npy(np.zeros(0), header=header("<U99999999999", "(1,)")),
    "big-endian": npy(np.zeros(3), header=header(">f8")),
    "long double": npy(np.zeros(0), header=header("<f16", "(0,)")),
    "no booleans": npy(np.zeros(3), header=header("|b1"), data=b"\x00\x01\x02"),
    "no characters": npy(np.zeros(1), header=header("<U1", "(1,)"), data=b"\xff\xff\xff\xff"),
    "surrogate": npy(np.zeros(1), header=header("<U1", "(1,)"), data=b"\x00\xd8\x00\x00"),
    "empty": b"",
    "magic only": b"\x93NUMPY\x01\x00",
    "header longer than the file": b"\x93NUMPY\x01\x00\xff\xff{}",
    "npy version 2": b"\x93NUMPY\x02\x00" + len(header()).to_bytes(4, "little") + header() + bytes(24),
}


@pytest.mark.parametrize("name", HOSTILE_ARRAYS)
def test_hostile_arrays(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = one_array(tmp_path / "a", HOSTILE_ARRAYS[name])
    tracemalloc.start()
    try:
        assert read_bytes(path, path.read_bytes()) is None
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()
    assert capsys.readouterr().out == "", "something was executed"


HOSTILE_MANIFESTS = {
    "not JSON": b"{",
    "not UTF-8": b'{"kind": "\xff"}',
    "a list": b"[]",
    "a string": b'"permix"',
    "deep": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "deep lists": b"[" * 200_000,
    "NaN": json.dumps(head(x=float("nan"))).encode(),
    "Infinity": json.dumps(head(x=-float("inf"))).encode(),
    "overflow": json.dumps(head(x=7)).replace("7", "1e999").encode(),
    "endless integer": json.dumps(head(x=7)).replace("7", "9" * 10_000).encode(),
    "repeated key": json.dumps(head()).replace("{", '{"kind": "other",').encode(),
    "surrogate": json.dumps(head(x="\ud800")).encode(),
    "other format": json.dumps(head(format="zip")).encode(),
    "no format": b"{}",
    "version 0": json.dumps(head(version=0)).encode(),
    "version text": json.dumps(head(version="1")).encode(),
    "version true": json.dumps(head(version=True)).encode(),
    "no kind": json.dumps(head(kind=None)).encode(),
    "arrays missing": json.dumps(head("a")).encode(),
    "arrays no list": json.dumps(head(arrays={"a": 1})).encode(),
    "arrays no names": json.dumps(head(arrays=[[1]])).encode(),
}


@pytest.mark.parametrize("name", HOSTILE_MANIFESTS)
def test_hostile_manifests(tmp_path: Path, name: str) -> None:
    path = crafted(tmp_path / "a", [("manifest.json", HOSTILE_MANIFESTS[name])])
    assert read_bytes(path, path.read_bytes()) is None


def test_newer_version_says_so(tmp_path: Path) -> None:
    path = crafted(tmp_path / "a", [("manifest.json", json.dumps(head(version=9, permix="4.2")).encode())])
    message = r"written by permix 4\.2 with format version 9; this permix reads up to 2: update permix"
    with pytest.raises(FileFormatError, match=message):
        read_archive(path)


GOOD = json.dumps(head("a")).encode()
ZEROS = npy(np.zeros(3))


def special(name: str, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    return info


@pytest.mark.parametrize(
    "members",
    [
        [("manifest.json", GOOD), ("arrays/a.npy", ZEROS), ("arrays/a.npy", ZEROS)],
        [("manifest.json", GOOD), ("manifest.json", GOOD), ("arrays/a.npy", ZEROS)],
        [("manifest.json", GOOD), ("arrays/a.npy", ZEROS), ("arrays/../a.npy", ZEROS)],
        [("manifest.json", GOOD), ("arrays/a.npy", ZEROS), ("../a.npy", ZEROS)],
        [("manifest.json", GOOD), ("arrays/a.npy", ZEROS), ("/etc/passwd", b"")],
        [("manifest.json", GOOD), ("arrays/a.npy", ZEROS), ("C:\\a.npy", b"")],
        [("manifest.json", GOOD), ("arrays/a.npy", ZEROS), ("setup.py", b"")],
        [("manifest.json", GOOD), ("arrays/a.npy", ZEROS), ("arrays/", b"")],
        [("manifest.json", GOOD), ("arrays/a.npy", ZEROS), ("arrays/b.npy", ZEROS)],
        [("manifest.json", GOOD), ("arrays/a.npy", ZEROS), ("arrays/manifest.json.npy", ZEROS)],
        [("manifest.json", GOOD)],
        [("arrays/a.npy", ZEROS)],
        [],
        [("manifest.json", GOOD), (special("arrays/a.npy", stat.S_IFLNK | 0o777), b"/etc/passwd")],
        [("manifest.json", GOOD), (special("arrays/a.npy", stat.S_IFIFO | 0o777), ZEROS)],
    ],
)
def test_hostile_members(tmp_path: Path, members: list) -> None:
    path = crafted(tmp_path / "a", members)
    assert read_bytes(path, path.read_bytes()) is None


def test_encrypted_flag_and_strange_compression(tmp_path: Path) -> None:
    content = one_array(tmp_path / "a", ZEROS).read_bytes()
    for local, central in ((6, 8), (8, 10)):  # flags, method
        damaged = bytearray(content)
        for signature, offset in ((b"PK\x03\x04", local), (b"PK\x01\x02", central)):
            start = damaged.find(signature)
            while start >= 0:
                damaged[start + offset] = 1 if local == 6 else 99
                start = damaged.find(signature, start + 4)
        assert read_bytes(tmp_path / "b", bytes(damaged)) is None


def test_declared_sizes_do_not_take_memory(tmp_path: Path) -> None:
    """A member that declares four gigabytes and holds a few bytes."""
    huge = header("<f8", f"({2**32 // 8 - 20},)")
    content = one_array(tmp_path / "a", npy(np.zeros(3), header=huge)).read_bytes()
    damaged = bytearray(content)
    for signature, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        start = damaged.rfind(signature)
        size = len(huge) + 10 + 8 * (2**32 // 8 - 20)
        damaged[start + offset : start + offset + 4] = size.to_bytes(4, "little")
    tracemalloc.start()
    try:
        assert read_bytes(tmp_path / "b", bytes(damaged)) is None
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


def test_zip_bomb(tmp_path: Path) -> None:
    """Thirty megabytes of zeros in thirty kilobytes: fine by default, refused under a lower limit."""
    write_archive(tmp_path / "bomb", {"kind": "test"}, {"a": np.zeros(30 * 2**20, np.uint8)})
    content = (tmp_path / "bomb").read_bytes()
    assert len(content) < 100_000
    tracemalloc.start()
    try:
        assert read_bytes(tmp_path / "bomb", content, max_bytes=2**20) is None
        assert tracemalloc.get_traced_memory()[1] < 2e6
    finally:
        tracemalloc.stop()
    with pytest.raises(FileFormatError, match="max_bytes"):
        read_archive(tmp_path / "bomb", max_bytes=2**20)
    assert read_archive(tmp_path / "bomb")[1]["a"].nbytes == 30 * 2**20


def test_a_member_cannot_hold_more_than_deflate_packs(tmp_path: Path) -> None:
    """The directory declares far more than the packed bytes can give: refused by that, whatever the limit."""
    path = tmp_path / "a"
    write_archive(path, {"kind": "test"}, {"a": np.arange(50.0)})
    damaged = bytearray(path.read_bytes())
    start = damaged.rfind(b"PK\x01\x02")
    damaged[start + 24 : start + 28] = (2**31).to_bytes(4, "little")
    path.write_bytes(damaged)
    with pytest.raises(FileFormatError, match="cannot hold"):
        read_archive(path, max_bytes=2**45)


def test_one_limit_for_all_readers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert unpacking_limit() == 2**30
    write_archive(tmp_path / "a", {"kind": "test"}, {"a": np.zeros(2**20, np.uint8)})
    (tmp_path / "a.gz").write_bytes(gzip.compress(bytes(2**20)))
    monkeypatch.setenv("PERMIX_MAX_BYTES", str(2**19))
    with pytest.raises(FileFormatError, match=r"more than 524288 bytes.*PERMIX_MAX_BYTES"):
        read_archive(tmp_path / "a")
    with pytest.raises(FileFormatError, match=r"a\.gz: .*more than 524288 bytes.*PERMIX_MAX_BYTES"):
        read_unpacked(tmp_path / "a.gz")
    with pytest.warns(PermixWarning, match="unpacks to 1048576 bytes"):
        write_archive(tmp_path / "b", {"kind": "test"}, {"a": np.zeros(2**20, np.uint8)})
    monkeypatch.setenv("PERMIX_MAX_BYTES", str(2**21))
    assert read_archive(tmp_path / "a")[1]["a"].size == 2**20
    assert len(read_unpacked(tmp_path / "a.gz")) == 2**20
    for wrong in ("1e9", "0", "-5", "much"):
        monkeypatch.setenv("PERMIX_MAX_BYTES", wrong)
        with pytest.raises(DataError, match="whole number of bytes"):
            unpacking_limit()


def test_a_gzip_bomb_takes_no_more_than_the_limit(tmp_path: Path) -> None:
    """Two hundred megabytes of zeros in two hundred kilobytes."""
    with gzip.open(tmp_path / "bomb.csv.gz", "wb", compresslevel=1) as stream:
        for _ in range(200):
            stream.write(bytes(2**20))
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError, match="would unpack to more"):
            read_unpacked(tmp_path / "bomb.csv.gz", max_bytes=2**23)
        assert tracemalloc.get_traced_memory()[1] < 5 * 2**23
    finally:
        tracemalloc.stop()


def test_parse_json_gives_what_json_gives() -> None:
    text = '{"a": [1, 2.5, null, true], "b": {"c": "ž"}}'
    assert parse_json(text.encode()) == json.loads(text)


def test_writing_refuses_what_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is a folder"):
        write_archive(tmp_path, {"kind": "x"}, {})
    with pytest.raises(DataError, match=r"the folder .*missing does not exist"):
        write_archive(tmp_path / "missing" / "x", {"kind": "x"}, {})
    if hasattr(os, "mkfifo"):  # like a device: a rename would replace it by a file
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(DataError, match="not an ordinary file"):
            write_archive(tmp_path / "pipe", {"kind": "x"}, {})
    assert not list(tmp_path.glob("*.tmp"))
