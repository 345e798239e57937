"""The TLS settings that sinks share, under eKuiper's names."""

from __future__ import annotations

import base64
import errno
import ssl
import tempfile
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from rules.base import Model
from sinks.base import Fatal
from sinks.settings import WITHOUT_EFFECT, Text, reveal

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

    @model_validator(mode="after")
    def _each_is_given_once(self) -> Self:
        for file, raw, name in (
            (self.certification_path, self.certification_raw, "certification"),
            (self.private_key_path, self.private_key_raw, "privateKey"),
            (self.root_ca_path, self.root_ca_raw, "rootCa"),
        ):
            if file and raw:
                raise ValueError(f"the {name} is given as a path and raw; remove one")
        return self

    def tls_context(self) -> ssl.SSLContext:
        """The context for a client; raises `Fatal` when a file cannot be used."""
        try:
            context = ssl.create_default_context(
                cafile=self.root_ca_path and reveal(self.root_ca_path),
                cadata=None if self.root_ca_raw is None else _pem(self.root_ca_raw),
            )
            if self.certification_path:
                key_path = self.private_key_path and reveal(self.private_key_path)
                context.load_cert_chain(reveal(self.certification_path), key_path)
            if self.certification_raw:
                self._load_raw(context)
        except (OSError, ValueError) as failure:
            raise Fatal(f"TLS files cannot be used: {failure}") from failure
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
