"""How far a long copy is: a bar on a terminal, a line now and then elsewhere, nothing when quiet."""

import time

_BAR_CELLS = 30
_BAR_SECONDS = 0.1
_LINE_SECONDS = 10


class Progress:
    def __init__(self, title, total_bytes, out, quiet=False):
        self._title, self._total, self._done, self._out = title, max(total_bytes, 1), 0, out
        self._quiet = quiet
        self._on_terminal = out.isatty()
        self._begin = self._shown = time.monotonic()

    def add(self, count):
        self._done += count
        now = time.monotonic()
        if not self._quiet and now - self._shown >= (_BAR_SECONDS if self._on_terminal else _LINE_SECONDS):
            self._shown = now
            self._show(now)

    def finish(self):
        if not self._quiet and self._on_terminal:
            self._show(time.monotonic())
            self._out.write("\n")

    def _show(self, now):
        share = min(self._done / self._total, 1)
        seconds = max(now - self._begin, 1e-3)
        text = (
            f"{self._title} {share:4.0%}  {self._done / 1e9:.2f} of {self._total / 1e9:.2f} GB, "
            f"{self._done / seconds / 1e6:.0f} MB/s"
        )
        if self._on_terminal:
            cells = int(share * _BAR_CELLS)
            self._out.write(f"\r[{'#' * cells}{'.' * (_BAR_CELLS - cells)}] {text}\033[K")
        else:
            self._out.write(text + "\n")
        self._out.flush()
