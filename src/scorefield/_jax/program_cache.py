"""Compiled programs kept in a folder, so that later processes load them instead of compiling them again."""

import hashlib
import importlib.metadata
import os
import pathlib
import platform
import sys

# Programs that compile in less time are not worth a file.
LEAST_SECONDS = 0.1
QUIET_SINCE = [0, 10]  # versions of jaxlib before print a false alarm whenever they load a program
OPTIONS = {
    "jax_persistent_cache_min_compile_time_secs": LEAST_SECONDS,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}


def default_folder() -> pathlib.Path:
    """The user's cache folder, one for each kind of processor: programs use all its instructions."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or pathlib.Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = pathlib.Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "scorefield" / hashlib.sha256(_processor().encode()).hexdigest()[:16]


def _processor() -> str:
    """A text that differs between processors with different instructions."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            return next(line for line in lines if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        return f"{platform.machine()} {platform.processor()}"


def cache_programs(folder: str | os.PathLike | None = None) -> pathlib.Path:
    """Keep compiled programs in a folder, from now on in this process.

    Fits compile programs for the number of columns and classes, which takes seconds at each start of Python. With a
    folder, only the first start on a machine takes them. The ``scorefield`` command does this by itself.

    Parameters
    ----------
    folder : None, str or path
        None is the user's cache folder. Nothing is ever deleted from it; a program takes about 50 kB.

    Returns
    -------
    folder : pathlib.Path

    Examples
    --------
    >>> import tempfile
    >>> from scorefield import cache_programs
    >>> folder = cache_programs(tempfile.mkdtemp())
    """
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    chosen = default_folder() if folder is None else pathlib.Path(folder)
    chosen.mkdir(parents=True, exist_ok=True)
    jax.config.update("jax_compilation_cache_dir", str(chosen))
    for name, value in OPTIONS.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()  # a cache that was chosen before stays in use otherwise
    return chosen


def cache_by_environment() -> None:
    """`cache_programs` for a process that has not imported jax yet; a folder or option that is set is left as it is."""
    version = importlib.metadata.version("jaxlib").split(".")
    if "JAX_COMPILATION_CACHE_DIR" in os.environ or [int(part) for part in version[:2]] < QUIET_SINCE:
        return
    try:
        folder = default_folder()
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # no home, or one that cannot be written to
        return
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    for name, value in OPTIONS.items():
        os.environ.setdefault(name.upper(), str(value))
