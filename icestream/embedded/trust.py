"""Which certificate authorities a download trusts: those that pip and curl trust on this machine."""

from __future__ import annotations

import configparser
import contextlib
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from icestream.api.errors import PreconditionError

_VARIABLES: Final = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT")
_SYSTEM_BUNDLES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, Red Hat
    "/etc/ssl/ca-bundle.pem",  # SUSE
    "/etc/ssl/cert.pem",  # Alpine, macOS
)
_KEYCHAINS: Final = (
    "/System/Library/Keychains/SystemRootCertificates.keychain",
    "/Library/Keychains/System.keychain",
)


def trusting_context(environ: Mapping[str, str]) -> ssl.SSLContext:
    """Trusts the system's store and every bundle that the environment or pip's configuration names."""
    context = ssl.create_default_context()
    # Python 3.13 sets it, pip and curl do not: many authorities of companies lack what it asks for.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    for bundle in map(Path, _SYSTEM_BUNDLES):
        if bundle.is_file():
            with contextlib.suppress(OSError):
                context.load_verify_locations(cafile=bundle)
            break
    if sys.platform == "darwin":
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            context.load_verify_locations(cadata=_keychain_certificates())
    for source, path in _named_bundles(environ):
        try:
            if path.is_dir():
                context.load_verify_locations(capath=path)
            else:
                context.load_verify_locations(cafile=path)
        except OSError as error:
            reason = error.strerror or "it has no certificates"
            raise PreconditionError(
                f"{source} names {path} as the file of certificate authorities, which cannot be read"
                f" ({reason}); correct it"
            ) from error
    if not context.get_ca_certs() and ssl.get_default_verify_paths().capath is None:
        # Those that pip brings along.
        from requests.utils import DEFAULT_CA_BUNDLE_PATH

        context.load_verify_locations(cafile=DEFAULT_CA_BUNDLE_PATH)
    return context


def _named_bundles(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    for name in _VARIABLES:
        if environ.get(name):
            yield name, Path(environ[name]).expanduser()
    home = Path(environ["HOME"]) if environ.get("HOME") else Path.home()
    files = (
        Path("/etc/pip.conf"),
        Path("/etc/xdg/pip/pip.conf"),
        home / ".pip" / "pip.conf",
        Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "pip" / "pip.conf",
        home / "Library" / "Application Support" / "pip" / "pip.conf",
        Path(sys.prefix) / "pip.conf",
        *([Path(environ["PIP_CONFIG_FILE"])] if environ.get("PIP_CONFIG_FILE") else []),
    )
    for file in files:
        config = configparser.RawConfigParser()
        with contextlib.suppress(configparser.Error, OSError, UnicodeDecodeError):
            config.read(file, encoding="utf-8")
        if cert := config.get("global", "cert", fallback=""):
            yield str(file), Path(cert).expanduser()


def _keychain_certificates() -> str:
    """Those of macOS, which OpenSSL does not read by itself."""
    command = ["/usr/bin/security", "find-certificate", "-a", "-p", *_KEYCHAINS]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
