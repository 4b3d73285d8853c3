"""All tables that a job whose records name them has ever written, found by looking into the folders below
`delta.location`. Used by `sink`."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pyarrow.fs as pf

from icestream.api.config import Config
from icestream.connectors.delta.commits.log import FOLDER
from icestream.connectors.delta.commits.marks import key_of
from icestream.connectors.delta.opening import delta_errors, open_table
from icestream.connectors.delta.settings import own_locations
from icestream.connectors.delta.storage import Storage, file_path, storage_errors
from icestream.connectors.delta.table_settings import LOCATION, location_of
from icestream.tables.routing.routes import name_problem

_AT_ONCE: Final = 8
_DEEPEST: Final = 10


def tables_of_job(config: Config, job: str) -> list[str]:
    """The names of all tables that have a checkpoint of the job. Asks every table: to be called rarely."""
    storage, key = Storage.from_config(config), key_of(job)

    def is_ours(name: str) -> bool:
        table = open_table(name, location_of(config, name), storage)
        if table is None:
            return False
        with delta_errors(f"reading table {name}"):
            return table.transaction_version(key) is not None

    root = config.get(LOCATION, "").strip()
    with storage_errors("looking for the tables of the job"):
        found = set(_names(storage.file_system(root), file_path(root), ())) if root else set()
    own = {table: file_path(place) for table, place in own_locations(config).items()}
    # One that has a place of its own has no other name, wherever that is.
    found = {name for name in found if file_path(location_of(config, name)) not in own.values()}
    names = sorted(found.union(own))
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        ours = list(threads.map(is_ours, names))
    return [name for name, is_one in zip(names, ours, strict=True) if is_one]


def _names(files: pf.FileSystem, root: str, above: tuple[str, ...]) -> Iterator[str]:
    """A folder with a log is a table. Below it are folders of its partitions, and perhaps other tables."""
    inside = files.get_file_info(pf.FileSelector(posixpath.join(root, *above), allow_not_found=True))
    folders = [one.base_name for one in inside if one.type is pf.FileType.Directory]
    if FOLDER in folders:
        if above and name_problem(".".join(above), bare_names=True) is None:
            yield ".".join(above)
        folders = [name for name in folders if name != FOLDER and "=" not in name]
    for name in folders if len(above) < _DEEPEST else ():
        yield from _names(files, root, (*above, name))
