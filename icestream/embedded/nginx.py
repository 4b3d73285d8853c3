"""nginx in front of the nodes of a MinIO cluster, as a process of a user: its configuration and its command.

Started by the stack. Without root it keeps all its files in a folder of its own and listens on loopback.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from icestream.embedded.ports import HOST

HOW_TO_GET_IT: Final = "Debian: apt-get install nginx-light"


@dataclass(frozen=True)
class Balancer:
    """What one nginx listens on, and the ports behind it."""

    port: int
    nodes: Sequence[int]
    console_port: int | None = None
    consoles: Sequence[int] = ()
    catalog: int | None = None
    """The port of the catalog, which answers under `/_iceberg` of the same address."""


def nginx(environ: Mapping[str, str] = os.environ) -> str | None:
    """The path of nginx; Debian has it where only root's PATH leads."""
    return shutil.which("nginx", path=f"{environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def command(program: str, folder: Path) -> list[str]:
    return [program, "-p", str(folder), "-e", "stderr", "-c", str(folder / "nginx.conf")]


def configuration(balancer: Balancer) -> str:
    servers = [_server(balancer.port, _storage_locations(balancer))]
    upstreams = [_upstream("storage", balancer.nodes, "least_conn;")]
    if balancer.console_port and balancer.consoles:
        # The console keeps a login per node: one visitor stays with one node.
        upstreams.append(_upstream("console", balancer.consoles, "ip_hash;"))
        servers.append(_server(balancer.console_port, [_location("/", "console", websocket=True)]))
    if balancer.catalog:
        upstreams.append(_upstream("catalog", [balancer.catalog]))
    scratch = "\n".join(
        f"    {kind}_temp_path scratch/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return f"""daemon off;
pid nginx.pid;
worker_processes 1;
error_log stderr warn;
events {{ worker_connections 1024; }}
http {{
    access_log off;
{scratch}
    # As many bytes, headers and spellings as the clients of S3 send.
    client_max_body_size 0;
    ignore_invalid_headers off;
    proxy_http_version 1.1;
    proxy_buffering off;
    proxy_request_buffering off;
    proxy_read_timeout 300s;
    # Signatures hold the address that the client sees.
    proxy_set_header Host $http_host;
    proxy_set_header X-Real-IP $remote_addr;
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    proxy_set_header X-Forwarded-Proto $scheme;
{"".join(upstreams)}{"".join(servers)}}}
"""


def _storage_locations(balancer: Balancer) -> list[str]:
    found = [_location("/", "storage")]
    return [_location("/_iceberg/", "catalog"), *found] if balancer.catalog else found


def _upstream(name: str, ports: Sequence[int], policy: str = "") -> str:
    lines = [policy, *(f"server {HOST}:{port};" for port in ports)]
    inner = "".join(f"        {line}\n" for line in lines if line)
    return f"    upstream {name} {{\n{inner}    }}\n"


def _server(port: int, locations: Sequence[str]) -> str:
    return f"    server {{\n        listen {HOST}:{port};\n{''.join(locations)}    }}\n"


def _location(path: str, upstream: str, *, websocket: bool = False) -> str:
    lines = [f"proxy_pass http://{upstream};"]
    if websocket:
        # `Host` once more: a location with a header of its own has none of the others.
        lines += ["proxy_set_header Host $http_host;", "proxy_set_header Upgrade $http_upgrade;"]
        lines += ['proxy_set_header Connection "upgrade";']
    else:
        lines += ["proxy_set_header Host $http_host;", 'proxy_set_header Connection "";']
    return f"        location {path} {{ {' '.join(lines)} }}\n"
