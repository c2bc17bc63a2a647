"""Entry point of the `scorefield` command: signals become exit codes, warnings and errors become plain lines.

What takes long to import is imported inside `main`, so that a signal during imports is handled too.
"""

import signal
import sys
import warnings

from scorefield._jax.program_cache import cache_by_environment
from scorefield._jax.signals import handle_again

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


def main():
    """Run the command. An error is one line on standard error unless --debug is given."""
    received = []
    handlers, hook = _raise_signals(received), sys.unraisablehook
    sys.unraisablehook = lambda lost: _raise_again(lost, received, hook)
    try:
        with warnings.catch_warnings():
            _run(received)
    except KeyboardInterrupt:
        pass  # the exit code is set below
    finally:
        sys.unraisablehook = hook
        for number, handler in handlers.items():  # a second signal must not interrupt the interpreter's exit
            signal.signal(number, signal.SIG_DFL if received else handler)
        if received:
            sys.exit(128 + received[0])


def _raise_signals(received):
    """Raise KeyboardInterrupt at each signal and record its number; returns the earlier handlers."""

    def stop(number, frame):
        received.append(number)
        raise KeyboardInterrupt

    # nohup and shells that start a job in the background ignore some signals on purpose.
    return {n: signal.signal(n, stop) for n in SIGNALS if signal.getsignal(n) != signal.SIG_IGN}


def _raise_again(lost, received, hook):
    """Handle an exception that Python cannot raise, such as one in jax's callback of the garbage collector."""
    if not (received and issubclass(lost.exc_type, KeyboardInterrupt)):
        hook(lost)
        return
    handle_again(received[-1])


def _run(received):
    cache_by_environment()
    from scorefield.cli.app import app
    from scorefield.cli.console import show_error, show_warning, state

    warnings.showwarning = show_warning
    try:
        app(prog_name="scorefield")
    except Exception as error:
        if received:  # an interrupt that a library turned into an error
            return
        if state["debug"]:
            raise
        show_error(error)
        sys.exit(1)
