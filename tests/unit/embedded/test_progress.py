"""What a user sees of a download: a bar on a terminal, lines elsewhere."""

import io

from rich.console import Console

from icestream.embedded.progress import download_progress


def test_a_terminal_shows_bytes_rate_and_time_left() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=80)
    with download_progress("kafka", 40_000_000, console) as advance:
        advance(10_000_000)
        advance(30_000_000)
    last = screen.getvalue().splitlines()[-2]
    assert "Java libraries" in last
    assert "40.0/40.0 MB" in last
    assert "B/s" in last
    assert "0:00:00" in last


def test_elsewhere_lines_say_how_much_is_here() -> None:
    log = io.StringIO()
    console = Console(file=log, force_terminal=False, width=20)
    with download_progress("kafka", 40_000_000, console, every_s=0) as advance:
        advance(10_000_000)
        advance(-10_000_000)
        advance(12_300_000)
        advance(27_700_000)
    first, *lines = log.getvalue().splitlines()
    assert first == "fetching Java libraries: kafka (40 MB, once)"
    assert [line.split(",")[0] for line in lines] == [
        "  10 of 40 MB",
        "  0.0 of 40 MB",
        "  12 of 40 MB",
    ]
    assert all(line.endswith(" s left") and " MB/s, " in line for line in lines)
