"""The TLS settings that sinks share, under eKuiper's names."""

from __future__ import annotations

import base64
import errno
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from rules.base import Model
from rules.problems import in_words
from rules.secrets import reveal
from sinks.base import Fatal
from sinks.kuiper_keys import WITHOUT_EFFECT
from sinks.settings import Text

TLS_WITHOUT_EFFECT = {**WITHOUT_EFFECT, "renegotiationSupport": "no server may renegotiate"}
"""Properties without effect on a sink whose connection may be encrypted."""

_VERSIONS = {"tls1.2": ssl.TLSVersion.TLSv1_2, "tls1.3": ssl.TLSVersion.TLSv1_3}


class ClosedOnFailure(ssl.SSLSocket):
    """A socket of a client that is closed when it cannot be encrypted, without waiting for the garbage
    collector: where the server has gone already, or the handshake fails."""

    def getpeername(self) -> Any:
        """The peer's address. `wrap_socket` calls this first, and leaves the socket open if it raises."""
        try:
            return super().getpeername()
        except OSError as error:
            self.close()
            raise ConnectionResetError(errno.ECONNRESET, "the server has closed the connection") from error

    def do_handshake(self, block: bool = False) -> None:
        try:
            super().do_handshake(block)
        except OSError:
            self.close()
            raise


class BadTlsFile(OSError):
    """A certificate or key that cannot be used: the text names the file and the reason."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


def client_context(ca_file: str | None = None, ca_text: str | None = None) -> ssl.SSLContext:
    """A context that trusts these authorities, or else the system's. Raises BadTlsFile, and ValueError for
    the text."""
    if ca_file is None:
        return ssl.create_default_context(cadata=ca_text)
    _look_at(ca_file)
    try:
        return ssl.create_default_context(cafile=ca_file, cadata=ca_text)
    except ssl.SSLError:
        raise BadTlsFile(ca_file, f"'{ca_file}' holds no certificate in PEM format") from None


def present(context: ssl.SSLContext, certificate: str, key: str | None) -> None:
    """Let a client show its certificate, whose key is in a file of its own or in the same. Raises
    BadTlsFile."""
    for path in (certificate, key):
        if path is not None:
            _look_at(path)
    try:
        context.load_cert_chain(certificate, key, password=lambda: "")  # without one, OpenSSL asks a terminal
    except ssl.SSLError as error:
        of_key = f"the key '{key}'" if key else "the key in it"
        does_not_match = error.reason == "KEY_VALUES_MISMATCH"
        why = (
            "do not belong together" if does_not_match else "are not both in PEM format without a passphrase"
        )
        raise BadTlsFile(certificate, f"the certificate '{certificate}' and {of_key} {why}") from None


def _look_at(path: str) -> None:
    """Raises BadTlsFile for a file that cannot be read: the errors of `ssl` name none."""
    try:
        with Path(path).open("rb"):
            pass
    except OSError as error:
        raise BadTlsFile(path, f"'{path}' cannot be read: {in_words(error, with_file=False)}") from None


class TlsSettings(Model):
    """Certificates and verification of an encrypted connection."""

    certification_path: Text | None = Field(None, description="file with the client certificate")
    private_key_path: Text | None = Field(None, description="file with the key of the client certificate")
    root_ca_path: Text | None = Field(
        None, description="file with the certificates to trust instead of the system's"
    )
    certification_raw: Text | None = Field(
        None, description="the client certificate itself, as PEM or its base64"
    )
    private_key_raw: Text | None = Field(None, description="the key of the client certificate itself")
    root_ca_raw: Text | None = Field(
        None, alias="rootCARaw", description="the certificates to trust themselves"
    )
    insecure_skip_verify: bool = Field(
        False, description="accept any server certificate; only for trying out"
    )

    tls_min_version: Literal["tls1.2", "tls1.3"] = Field(
        "tls1.2", description="the oldest version of TLS that is spoken"
    )

    def faults(self) -> Iterator[str]:
        """Each file is given once."""
        yield from super().faults()
        for file, raw, name in (
            (self.certification_path, self.certification_raw, "certification"),
            (self.private_key_path, self.private_key_raw, "privateKey"),
            (self.root_ca_path, self.root_ca_raw, "rootCa"),
        ):
            if file and raw:
                yield f"the {name} is given as a path and raw; remove one"

    def unusable(self) -> tuple[str, str] | None:
        """The YAML key of a file that cannot be used now, and why; None if all can."""
        files = {
            "rootCaPath": self.root_ca_path,
            "certificationPath": self.certification_path,
            "privateKeyPath": self.private_key_path,
        }
        if not any(files.values()):
            return None
        try:
            self.tls_context()
        except Fatal as failure:
            cause = failure.__cause__
            at = cause.path if isinstance(cause, BadTlsFile) else None
            keys = [key for key, path in files.items() if path and reveal(path) == at]
            return (keys or [key for key, path in files.items() if path])[0], str(failure)
        return None

    def tls_context(self) -> ssl.SSLContext:
        """The context for a client; raises `Fatal` when a file cannot be used."""
        try:
            context = client_context(
                reveal(self.root_ca_path) if self.root_ca_path else None,
                None if self.root_ca_raw is None else _pem(self.root_ca_raw),
            )
            if self.certification_path:
                key_path = reveal(self.private_key_path) if self.private_key_path else None
                present(context, reveal(self.certification_path), key_path)
            if self.certification_raw:
                self._load_raw(context)
        except (OSError, ValueError) as failure:
            raise Fatal(f"TLS files cannot be used: {in_words(failure)}") from failure
        context.sslsocket_class = ClosedOnFailure
        context.minimum_version = _VERSIONS[self.tls_min_version]
        if self.insecure_skip_verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def _load_raw(self, context: ssl.SSLContext) -> None:
        """Load the certificate and its key through a file that only this process can read: `ssl` takes only
        files."""
        parts = [_pem(part) for part in (self.private_key_raw, self.certification_raw) if part]
        with tempfile.NamedTemporaryFile(mode="w", suffix=".pem") as file:
            file.write("\n".join(parts))
            file.flush()
            context.load_cert_chain(file.name)


def _pem(text: object) -> str:
    """A certificate or key as PEM; it may be given in base64. Raises ValueError for anything else."""
    written = reveal(text).strip()
    if not written.startswith("-----"):
        try:
            written = base64.b64decode(written, validate=True).decode("ascii")
        except ValueError:
            written = ""
    if not written.startswith("-----BEGIN"):
        raise ValueError("a raw certificate or key is PEM text, or PEM text in base64")
    return written
