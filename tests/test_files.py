"""Files are written whole or not at all, whatever happens meanwhile."""

import os
import stat
import subprocess
import sys

import pytest

from undrift import files
from undrift.files import replace_file, write_text_atomically


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), KeyboardInterrupt(), SystemExit(143)]
)
@pytest.mark.parametrize("before", ["old", None])
def test_whatever_is_raised_leaves_what_was_there_and_nothing_else(tmp_path, error, before):
    path = tmp_path / "page.md"
    if before is not None:
        path.write_text(before)

    def interrupted():
        with replace_file(path) as new:
            new.write_text("half")
            raise error

    with pytest.raises(type(error)):
        interrupted()
    assert [own.read_text() for own in tmp_path.iterdir()] == ([] if before is None else [before])


def test_until_the_end_the_old_file_is_there(tmp_path):
    path = tmp_path / "figure.svg"
    path.write_text("old")
    with replace_file(path) as new:
        assert new.parent == tmp_path
        assert new.suffix == ".svg"
        new.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["figure.svg"]


def test_a_text_has_the_same_bytes_everywhere(tmp_path):
    path = tmp_path / "page.md"
    write_text_atomically(path, "é → \ud800\n")
    assert path.read_bytes() == "é → ?\n".encode()


@pytest.mark.posix
def test_permissions_and_links_stay(tmp_path):
    kept, link, other = tmp_path / "kept.md", tmp_path / "link.md", tmp_path / "other"
    other.touch()
    write_text_atomically(kept, "new")
    assert stat.S_IMODE(kept.stat().st_mode) == stat.S_IMODE(other.stat().st_mode)
    kept.chmod(0o640)
    link.symlink_to(kept)
    write_text_atomically(link, "newer")
    assert link.is_symlink()
    assert kept.read_text() == "newer"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o640


def test_what_cannot_be_replaced_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"page.md cannot be written: there is no folder .*none$"):
        write_text_atomically(tmp_path / "none" / "page.md", "")
    with pytest.raises(OSError, match="is a folder; give the name of a file in it"):
        write_text_atomically(tmp_path, "")


def test_what_a_killed_process_left_is_removed_and_what_another_writes_is_not(tmp_path):
    program = "from undrift.files import replace_file; import os, sys\n"
    program += "with replace_file(sys.argv[1]) as new: new.write_text('half'); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", program, tmp_path / "out.csv"], check=False)
    (abandoned,) = tmp_path.iterdir()
    stranger = tmp_path / ".out.csv.unfinished-by hand.csv"
    stranger.write_text("not ours")
    with replace_file(tmp_path / "out.csv") as first:
        assert not abandoned.exists()
        with replace_file(tmp_path / "out.csv") as second:  # two runs at once
            assert first.exists()
            second.write_text("second")
        first.write_text("first")
    assert (tmp_path / "out.csv").read_text() == "first"
    assert set(tmp_path.iterdir()) == {tmp_path / "out.csv", stranger}


def test_a_file_is_closed_before_it_is_renamed_where_files_cannot_be_locked(tmp_path, monkeypatch):
    """As on Windows, which does not rename an open file and has no `fcntl`."""
    opened, rename = [], os.replace

    def make(**options):
        handle, name = make_file(**options)
        opened.append(handle)
        return handle, name

    def rename_closed(old, new):
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(opened[0])
        rename(old, new)

    make_file = files.tempfile.mkstemp
    monkeypatch.setattr(files, "fcntl", None)
    monkeypatch.setattr(files.tempfile, "mkstemp", make)
    monkeypatch.setattr(os, "replace", rename_closed)
    write_text_atomically(tmp_path / "page.md", "new")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["new"]
