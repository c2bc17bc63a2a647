"""Files and folders that are written whole or not at all, and tables written to them in parts."""

import contextlib
import importlib.util
import os
import pathlib
import secrets
import shutil

from scorefield.data.formats import KINDS, output_file


def _partial_path(path):
    """A hidden name beside `path` for unfinished content."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")


@contextlib.contextmanager
def whole_file(path, *, replace=True):
    """Yield a temporary path that is renamed to `path` if the block succeeds and removed if it fails.

    With `replace=False` a file that has appeared at `path` meanwhile is kept, and FileExistsError is raised.
    """
    path = pathlib.Path(path).resolve()  # a link is kept, the file behind it is replaced
    partial = _partial_path(path)
    try:
        partial.touch(exist_ok=False)  # mode 0o666 less the umask, which the kernel applies
        yield partial
        if replace:
            with contextlib.suppress(FileNotFoundError):
                partial.chmod(path.stat().st_mode & 0o777)
            os.replace(partial, path)
        else:
            _rename_to_new(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _rename_to_new(partial, path):
    try:
        try:
            os.link(partial, path)  # os.rename would replace an existing file
        except FileExistsError:
            raise
        except OSError:  # no hard links on this file system: reserve the name with an empty file
            path.touch(exist_ok=False)
            os.replace(partial, path)
    except FileExistsError as error:
        raise FileExistsError(_already_there(path)) from error
    partial.unlink(missing_ok=True)


def _already_there(path):
    return f"Expected a new output file, got {path}, which exists; give another name or --force."


@contextlib.contextmanager
def whole_folder(path):
    """Yield a temporary folder that is renamed to `path` if the block succeeds and removed if it fails."""
    path = pathlib.Path(path).resolve()  # other processes may write to it from another working directory
    if path.exists():
        raise FileExistsError(_folder_already_there(path))
    if not path.parent.is_dir():
        raise FileNotFoundError(f"Expected an existing folder for the output, got {path.parent}; make it first.")
    partial = _partial_path(path)
    try:
        partial.mkdir()
        yield partial
        _rename_to_new_folder(partial, path)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _rename_to_new_folder(partial, path):
    """Rename a folder. POSIX silently replaces an empty folder, so the name is reserved first; Windows refuses."""
    if os.name == "nt":
        os.rename(partial, path)
        return
    try:
        path.mkdir()
    except FileExistsError as error:
        raise FileExistsError(_folder_already_there(path)) from error
    try:
        os.rename(partial, path)
    except BaseException:
        with contextlib.suppress(OSError):
            path.rmdir()
        raise


def _folder_already_there(path):
    return f"Expected a new folder, got {path}, which exists; choose another name or remove it."


def write_whole(path, content, *, replace=True):
    """Write text or bytes as a whole file; missing folders are made."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path, replace=replace) as partial:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)


# Package and extra that writing a kind of file needs.
NEEDED = {
    ".xlsx": ("openpyxl", "excel"),
    ".onnx": ("onnx", "onnx"),
    ".html": ("matplotlib", "plot"),
    ".skops": ("skops", "io"),
}


def check_output(path, *, force=False, kinds=KINDS):
    """Refuse an output that could not be written or would overwrite a file, before any work is done."""
    path = pathlib.Path(path)
    if not path.name.endswith(kinds):
        raise ValueError(f"Expected an output that ends in {', '.join(kinds)}, got {path}; give another name.")
    for kind, (package, extra) in NEEDED.items():
        if path.name.endswith(kind) and importlib.util.find_spec(package) is None:
            raise ModuleNotFoundError(
                f"Expected {package} to write {path}, but it is not installed; pip install 'scorefield[{extra}]'."
            )
    if path.is_dir():
        raise IsADirectoryError(f"Expected a file as output, got the folder {path}; give a file name in it.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"Expected an existing folder for the output, got {path.parent}; make it first.")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"Expected a writable folder for the output, got {path.parent}; give another one.")
    if path.exists() and not force:
        raise FileExistsError(_already_there(path))


def write_parts(path, parts, *, like=None, replace=True):
    """Write tables one after the other into one whole file; returns the number of rows.

    A part is a DataFrame, or an arrow table of cells as the format has them (see `FileTable.cells_for`). A text file
    follows the separator, line ends and encoding of `like`, the format of another file.
    """
    import pyarrow as pa

    output, schema, write, n_rows = output_file(path, like), None, None, 0
    with whole_file(path, replace=replace) as partial, contextlib.ExitStack() as stack:
        for part in parts:
            cells = part if isinstance(part, pa.Table) else encode(part, output, schema)
            if schema is None:
                schema = cells.schema
                write = stack.enter_context(output.writer(partial, schema))
            write(cells)
            n_rows += len(cells)
        stack.close()  # flush before the file is renamed
    return n_rows


def encode(frame, output, schema=None):
    """A DataFrame as cells of an output format, in the types of `schema` if it is given."""
    import pyarrow as pa

    types = {} if schema is None else dict(zip(schema.names, schema.types, strict=True))
    columns = {str(name): output.encode(frame[name], types.get(str(name))) for name in frame.columns}
    return pa.table(columns)
