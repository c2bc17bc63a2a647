"""What the speed benchmarks share: timing, fresh processes, the matrix-product peak, rows on disk."""

import argparse
import contextlib
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time
import traceback
from itertools import pairwise

PACKAGES = (
    "scorefield", "jax", "jaxlib", "numpy", "scipy", "scikit-learn", "imbalanced-learn", "optax", "blackjax",
    "torch", "ForestDiffusion", "ctgan", "xgboost-cpu", "xgboost", "pyod",
)  # fmt: skip


def best_of(function, repeats, per=1):
    """Least seconds of `repeats` calls after one that compiles, divided by `per`: noise only ever adds time."""
    function()
    return least(function, repeats, per)


def least(function, repeats, per=1):
    """The same without the first call: for what has no state to warm."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        times.append((time.perf_counter() - begin) / per)
    return min(times)


def best_torch(function, repeats, per=1):
    """`best_of` of a torch job at one thread and at all of them: small networks are often faster with one."""
    import torch

    found = {}
    for threads in sorted({1, os.cpu_count()}):
        torch.set_num_threads(threads)
        found[threads] = best_of(function, repeats, per)
    return min(found.values())


def fresh_process(code, *arguments):
    """Wall seconds, peak resident megabytes and the last line printed (as JSON, if any) of Python code on its own."""
    return timed_process(["-c", code, *map(str, arguments)])


def timed_process(arguments):
    """The same for any arguments of the interpreter."""
    with tempfile.TemporaryFile("w+") as output:
        begin = time.perf_counter()
        process = subprocess.Popen([sys.executable, *arguments], stdout=output)
        _, status, usage = os.wait4(process.pid, 0)  # unlike Popen.wait, it tells the memory of this very process
        seconds = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        if status:
            raise SystemExit(f"python {' '.join(arguments)[:200]} failed")
        output.seek(0)
        lines = output.read().splitlines()
    unit = 1 << 20 if sys.platform == "darwin" else 1024  # ru_maxrss is bytes there, kilobytes elsewhere
    return seconds, usage.ru_maxrss / unit, json.loads(lines[-1]) if lines else None


def cold_seconds(code, repeats, *arguments):
    """Least wall seconds of a fresh process, from its start to its end."""
    return min(fresh_process(code, *arguments)[0] for _ in range(repeats))


def matmul_peak(repeats=7):
    """Floating-point operations per second of a large square product at jax's default precision."""
    import jax
    import jax.numpy as jnp

    size = 2048 if jax.default_backend() == "cpu" else 8192  # an accelerator needs more to be busy
    a = jnp.ones((size, size)) / size
    product = jax.jit(jnp.matmul)
    return 2 * size**3 / best_of(lambda: product(a, a).block_until_ready(), repeats)


def network_flops(sizes):
    """Operations of one row through a fully connected network: a multiplication and an addition a weight."""
    return 2 * sum(a * b for a, b in pairwise(sizes))


def device_name():
    import jax

    device = jax.devices()[0]
    if device.platform != "cpu":
        return device.device_kind
    with contextlib.suppress(OSError):
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return f"{line.partition(':')[2].strip()}, {os.cpu_count()} cores"
    return f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores"


def versions():
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def absent(module, command):
    """Whether an optional peer is missing or broken; says so, with the remedy."""
    if importlib.util.find_spec(module) is None:
        print(f"{module} is not installed: left out ({command} to have it)", flush=True)
        return True
    try:
        importlib.import_module(module)
    except Exception as error:  # a peer that cannot be imported is no failure of the benchmark
        reason = traceback.format_exception_only(error)[-1].strip()
        print(f"{module} cannot be imported, left out: {reason}", flush=True)
        return True
    return False


class Compilations:
    """Counts what jax traces and compiles, and the seconds of it, while the block runs."""

    def __enter__(self):
        import jax

        self.traced, self.compiled, self.seconds, self.active = 0, 0, 0.0, True
        jax.monitoring.register_event_duration_secs_listener(self._listen)
        return self

    def __exit__(self, *_):
        self.active = False  # jax has no public way to take a single listener away

    def _listen(self, event, duration, **_):
        if self.active:
            self.traced += event.endswith("/jaxpr_trace_duration")
            self.compiled += event.endswith("/backend_compile_duration")
            self.seconds += duration


class Rows:
    """Rows of one benchmark: each is printed as it comes, and `write` puts all of them into one file, or none."""

    def __init__(self, name, options):
        self.name, self.options, self.rows = name, options, []
        self.common = {"benchmark": name, "quick": options.quick, "repeats": options.repeats}

    def add(self, text, **row):
        self.rows.append({**self.common, **row})
        print(text, flush=True)

    def write(self):
        from scorefield.data.files import write_whole

        common = {"device": device_name(), "versions": versions()}
        # A quick run must not take the place of a real one.
        path = pathlib.Path(self.options.out) / f"{self.name}{'-quick' if self.options.quick else ''}.jsonl"
        write_whole(path, "".join(json.dumps({**row, **common}) + "\n" for row in self.rows))
        print(f"{len(self.rows)} rows in {path}")


def with_jobs(parser):
    """The option --jobs, for benchmarks that measure quality and not time."""
    parser.add_argument("--jobs", type=int, default=2, help="processes")


def parse(documentation, repeats=5, extend=None, out="results/speed"):
    """Options that these benchmarks have in common."""
    parser = argparse.ArgumentParser(description=documentation.splitlines()[0])
    parser.add_argument("--out", default=out, help="folder of the rows")
    parser.add_argument("--quick", action="store_true", help="small settings, to see that it runs")
    parser.add_argument("--repeats", type=int, default=None, help=f"times each job is run (default {repeats}, quick 1)")
    if extend:
        extend(parser)
    options = parser.parse_args()
    if options.repeats is None:
        options.repeats = 1 if options.quick else repeats
    return options
