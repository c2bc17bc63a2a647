"""Signals whose handlers raise an exception, also where Python drops it."""

import _thread
import threading

RETRY = 0.05  # seconds until a lost exception is raised again: callbacks take far less


def handle_again(number):
    """Run the handler of a signal once more, soon, in the main thread.

    Python drops what a handler raises inside a callback, such as jax's of the garbage collector.
    """
    timer = threading.Timer(RETRY, _thread.interrupt_main, [number])
    timer.daemon = True
    timer.start()
