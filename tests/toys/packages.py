"""Makes the toy connectors look installed, as `pip install` would: folders for `PYTHONPATH`.

Python finds a package's entry points in a folder `NAME-VERSION.dist-info` beside it. That folder is written
from the toy's `pyproject.toml`; the code is used where it is.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

TOYS = Path(__file__).parent


def installed_toys(folder: Path) -> list[str]:
    """Write the metadata of all toys into a folder; the paths under which they and it are found."""
    code = []
    for file in sorted(TOYS.glob("*/pyproject.toml")):
        project = tomllib.loads(file.read_text())["project"]
        name, version = project["name"].replace("-", "_"), project["version"]
        metadata = folder / f"{name}-{version}.dist-info"
        metadata.mkdir(parents=True, exist_ok=True)
        (metadata / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {version}\n"
        )
        points = [
            f"[{group}]\n" + "\n".join(f"{point} = {value}" for point, value in named.items())
            for group, named in project["entry-points"].items()
        ]
        (metadata / "entry_points.txt").write_text("\n\n".join(points) + "\n")
        code.append(str(file.parent))
    return [*code, str(folder)]


def python_path(paths: list[str]) -> str:
    """`PYTHONPATH` of a process that has these, too."""
    return os.pathsep.join([*paths, *filter(None, [os.environ.get("PYTHONPATH")])])
