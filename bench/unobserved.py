"""The command line of a worker that nobody watches: its jobs tell their batches to no observer. Started by
`bench.observed`, which compares it with a worker as it is."""

from __future__ import annotations

from icestream.cli.main import main
from icestream.observers import Observers


def _nobody(self: Observers, observer: object, *more: object, **options: object) -> None:
    """In the place of `Observers.add`."""


if __name__ == "__main__":
    Observers.add = _nobody  # type: ignore[assignment, method-assign]
    main()
