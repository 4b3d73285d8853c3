"""How a registry wants to be told who we are: the challenge in its 401, and tokens. Used by `registry`.

A registry that turned hostile, or somebody on the way to one without TLS, writes the challenge. So: only a
challenge that the registry itself answered with counts, never one behind a redirect; the password goes to the
registry, or to a token server of its own host or domain, or to one that was allowed by name; by TLS, unless
plain HTTP was asked for and the server has the registry's own name; and the token is asked for the one
repository that is pushed to, whatever scope the challenge names.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from icestream.api.errors import RegistryRefused, RegistryUnavailable
from icestream.api.nesting import read_json
from icestream.image_archives.http_answers import limited_body

if TYPE_CHECKING:
    import httpx

    from icestream.image_archives.logins import Login
    from icestream.image_archives.references import Target

_PARAMETER: Final = re.compile(r'([a-zA-Z]+)\s*=\s*"([^"\\]{0,2000})"')
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/=-]{1,65536}")
_SERVICE: Final = re.compile(r"[\x20-\x7e]{1,255}")


@dataclass(frozen=True)
class Challenge:
    scheme: str
    """`basic` or `bearer`."""
    realm: str
    service: str | None


def challenge_in(header: str) -> Challenge | None:
    """Of a `WWW-Authenticate` header; None: none that we know."""
    scheme, _, rest = header.strip().partition(" ")
    parameters = {name.lower(): value for name, value in _PARAMETER.findall(rest[:8000])}
    if scheme.lower() not in ("basic", "bearer"):
        return None
    service = parameters.get("service", "")
    return Challenge(
        scheme.lower(), parameters.get("realm", ""), service if _SERVICE.fullmatch(service) else None
    )


def fetched_token(
    http: httpx.Client,
    challenge: Challenge,
    target: Target,
    login: Login | None,
    token_hosts: frozenset[str],
) -> str:
    """A token for the target's repository."""
    check_realm(challenge.realm, target, token_hosts)
    query = {"scope": f"repository:{target.repository}:pull,push"}
    if challenge.service is not None:
        query["service"] = challenge.service
    import httpx

    auth = httpx.BasicAuth(login.user, login.password) if login else None
    try:
        with http.stream("GET", challenge.realm, params=query, auth=auth) as answer:
            if answer.status_code >= 500 or answer.status_code == 429:
                raise RegistryUnavailable(
                    f"the token server of the registry '{target.host}' answered {answer.status_code}"
                )
            if answer.status_code != 200:
                raise RegistryRefused(
                    f"the token server of the registry '{target.host}' answered {answer.status_code}:"
                    f" {'check the login' if login else 'there is no login for this registry'}"
                )
            told = read_json(limited_body(answer))
    except ValueError as error:
        raise RegistryRefused(f"the token server of the registry '{target.host}' answered no JSON") from error
    token = (told.get("token") or told.get("access_token")) if isinstance(told, dict) else None
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise RegistryRefused(f"the token server of the registry '{target.host}' answered without a token")
    return token


def check_realm(realm: str, target: Target, token_hosts: frozenset[str]) -> None:
    try:
        address = urlsplit(realm)
        host, registry = address.hostname or "", urlsplit(f"//{target.api_host}").hostname or ""
        _ = address.port
    except ValueError:
        host = registry = ""
    if not host or address.scheme not in ("https", "http") or "@" in address.netloc or address.fragment:
        raise RegistryRefused(f"the registry '{target.host}' asks for a login at no address that can be used")
    if address.scheme == "http" and not (target.is_plain_http and host == registry):
        raise RegistryRefused(
            f"the registry '{target.host}' asks for a login by plain HTTP at '{host}': no password is sent so"
        )
    if host != registry and host not in token_hosts and not _is_of_domain(host, registry):
        raise RegistryRefused(
            f"the registry '{target.host}' asks for its login at '{host}', which is not of its domain: allow"
            " this host by name if it is right"
        )


def _is_of_domain(host: str, registry: str) -> bool:
    """`auth.example.com` and `example.com` are, for `registry.example.com`; numeric addresses have none."""
    for name in (host, registry):
        try:
            ipaddress.ip_address(name)
            return False
        except ValueError:
            continue
    parent = registry.partition(".")[2]
    return "." in parent and (host == parent or host.endswith(f".{parent}"))
