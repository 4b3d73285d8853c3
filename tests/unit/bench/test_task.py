"""Ways to do a task's work, as they are named on the command line."""

from pathlib import Path

from bench.task import Way


def test_a_way_is_a_checkout_with_variables() -> None:
    way = Way.parsed("arenas=/checkout,MALLOC_ARENA_MAX=1,GLIBC_TUNABLES=glibc.malloc.hugetlb=1:a=2")

    assert way.folder == Path("/checkout")
    assert way.environment == {"MALLOC_ARENA_MAX": "1", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:a=2"}


def test_a_way_without_variables_is_a_checkout() -> None:
    assert Way.parsed("before=/checkout") == Way("before", Path("/checkout"), {})
