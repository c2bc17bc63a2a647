"""Signals whose handlers raise an exception, also where Python drops it."""

import _thread
import signal
import sys
import threading

RETRY = 0.05  # seconds until a lost exception is raised again: callbacks take far less


def handle_again(number: int) -> None:
    """Run the handler of a signal once more, soon, in the main thread.

    Python drops what a handler raises inside a callback, such as jax's of the garbage collector. While a compiled
    module is being imported nothing is raised: jaxlib's crashes on an exception there.
    """

    def handle() -> None:
        if _imports_compiled_module():
            handle_again(number)
        else:
            _thread.interrupt_main(signal.Signals(number))

    timer = threading.Timer(RETRY, handle)
    timer.daemon = True
    timer.start()


def _imports_compiled_module() -> bool:
    """True if the main thread is inside the import of an extension module."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None:
        if frame.f_code.co_qualname.startswith("ExtensionFileLoader."):
            return True
        frame = frame.f_back
    return False
