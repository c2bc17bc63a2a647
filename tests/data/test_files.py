"""Files and folders that are whole or absent: modes, and outputs that appear while their content is computed."""

import errno
import os
import sys
import threading

import pytest

from scorefield.data.files import check_output, whole_file, whole_folder, write_whole


@pytest.fixture
def umask():
    before = os.umask(0o027)
    yield
    os.umask(before)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no POSIX modes")
def test_modes_follow_the_umask_which_no_thread_sees_change(tmp_path, umask, monkeypatch):
    monkeypatch.setattr(os, "umask", None)
    write_whole(tmp_path / "file", "new")
    with whole_folder(tmp_path / "folder") as partial:
        assert partial.stat().st_mode & 0o777 == 0o750
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "folder").stat().st_mode & 0o777 == 0o750


@pytest.mark.parametrize("links", [True, False], ids=["with hard links", "without"])
def test_a_file_that_appears_meanwhile_is_kept(tmp_path, monkeypatch, links):
    def refuse(*_):
        raise OSError(errno.EPERM, "no hard links here")

    if not links:
        monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "file"

    def write():
        with whole_file(path, replace=False) as partial:
            partial.write_text("ours")
            path.write_text("theirs")

    with pytest.raises(FileExistsError, match=r"Expected a new output file, got .*file, which exists; give another"):
        write()
    assert path.read_text() == "theirs"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
    path.unlink()
    write_whole(path, "ours", replace=False)
    assert path.read_text() == "ours"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("kind", ["empty", "full", "file"])
def test_a_folder_that_appears_meanwhile_is_kept(tmp_path, kind):
    path = tmp_path / "folder"

    def write():
        with whole_folder(path) as partial:
            (partial / "ours").touch()
            if kind == "file":
                path.touch()
            else:
                path.mkdir()
            if kind == "full":
                (path / "theirs").touch()

    with pytest.raises(FileExistsError, match=r"Expected a new folder, got .*folder, which exists"):
        write()
    assert path.is_file() if kind == "file" else [p.name for p in path.iterdir()] == ["theirs"] * (kind == "full")
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def test_of_many_writers_one_wins(tmp_path):
    """Each is told whether its content is the file's."""
    start, won = threading.Barrier(8), []

    def write(number):
        start.wait()
        try:
            write_whole(tmp_path / "file", str(number), replace=False)
            won.append(number)
        except FileExistsError:
            pass

    threads = [threading.Thread(target=write, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(tmp_path / "file").read_text()] == [str(number) for number in won]
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("kind", "package", "extra"),
    [
        (".xlsx", "openpyxl", "excel"),
        (".onnx", "onnx", "onnx"),
        (".html", "matplotlib", "plot"),
        (".skops", "skops", "io"),
    ],
)
def test_what_writes_a_file_is_asked_for_before_any_work(tmp_path, monkeypatch, kind, package, extra):
    output, kinds = tmp_path / f"out{kind}", (kind,)
    check_output(output, kinds=kinds)
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    with pytest.raises(
        ModuleNotFoundError, match=rf"Expected {package} to write .*pip install 'scorefield\[{extra}\]'"
    ):
        check_output(output, kinds=kinds)
    check_output(tmp_path / "out.csv")
