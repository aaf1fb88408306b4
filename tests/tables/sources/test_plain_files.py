"""Plain files alone are opened, and small ones read up to a bound."""

import os
import socket

import pytest

from hedgerow.errors import SpecError
from hedgerow.machine import check_plain, read_small_file


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("folder", "the file is a directory; name a file"),
        ("pipe", "the file is a pipe; name a file"),
        ("link", "the file is a pipe; name a file"),
        ("socket", "the file is a socket; name a file"),
        ("/dev/zero", "the file is a device; name a file"),
        ("absent", "cannot read the file: No such file or directory"),
        ("a\0b", "cannot read the file: it has no name that a file can have"),
        ("x" * 300, "cannot read the file: File name too long"),
    ],
)
def test_what_is_no_plain_file_is_named_by_its_kind(tmp_path, monkeypatch, name, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    os.mkfifo("pipe")
    (tmp_path / "link").symlink_to("pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        with pytest.raises(SpecError) as caught:
            read_small_file(tmp_path / name, 10, "the file", SpecError)
    assert str(caught.value) == words


def test_a_file_is_read_up_to_its_bound_and_no_further(tmp_path):
    path = tmp_path / "x"
    for size in (0, 1 << 20):
        path.write_bytes(b"x" * size)
        assert read_small_file(path, 1 << 20, "the file", SpecError) == b"x" * size
    path.write_bytes(b"x" * ((1 << 20) + 1))
    with pytest.raises(SpecError, match="the file is larger than 1 MB"):
        read_small_file(path, 1 << 20, "the file", SpecError)


def test_nothing_is_no_fault_of_its_kind(tmp_path):
    check_plain(tmp_path / "absent", "the file", SpecError)
