"""The home folder, and the sentences when it cannot be had."""

from pathlib import Path

import pytest

from icestream.api.errors import PreconditionError
from icestream.embedded.home import home, require_space


def test_home_is_where_the_environment_says_and_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    assert home({"ICESTREAM_HOME": str(folder)}) == folder
    assert folder.is_dir()


def test_home_that_cannot_be_created_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PreconditionError, match=r"file/sub cannot be created .*; set ICESTREAM_HOME to"):
        home({"ICESTREAM_HOME": str(tmp_path / "file" / "sub")})


def test_full_disk_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(PreconditionError, match=r"MB free and 999999999999 MB are needed; free some space"):
        require_space(tmp_path, needed_mb=999_999_999_999)
