"""Progress of a fit: a bar on standard error, and scikit-learn's callbacks."""

import sys


class ProgressReport:
    """A trainer callback: a bar on standard error when verbose, and scikit-learn's fit callbacks where they are set."""

    def __init__(self, estimator, name, verbose):
        self.estimator, self.name, self.verbose = estimator, name, verbose
        self.context = getattr(estimator, "_callback_fit_ctx", None)
        self.drawn = False

    @property
    def wanted(self):
        """True if verbose or a callback is set."""
        return bool(self.verbose) or self.context is not None

    def __call__(self, progress):
        if self.context is not None:
            task = self.context.subcontext(task_name=f"{self.name} chunk")
            task.call_on_fit_task_begin(estimator=self.estimator)
            task.call_on_fit_task_end(estimator=self.estimator)
        if self.verbose:
            self.drawn = True
            width = 30
            done = min(width, round(width * progress.step / progress.max_steps))
            bar = "#" * done + "." * (width - done)
            sys.stderr.write(
                f"\r{self.name} [{bar}] {progress.step}/{progress.max_steps} "
                f"loss {progress.loss.mean():.4f} held-out {progress.held_out_loss.mean():.4f}"
            )
            sys.stderr.flush()

    def close(self, summary):
        """End the bar's line with one sentence."""
        if self.verbose:
            sys.stderr.write(f"\n{summary}\n" if self.drawn else f"{summary}\n")
            sys.stderr.flush()
