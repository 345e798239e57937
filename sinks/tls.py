"""The TLS settings that sinks share, under eKuiper's names."""

from __future__ import annotations

import ssl

from pydantic import Field

from rules.base import Model
from sinks.base import Fatal
from sinks.settings import Text, reveal


class _ClosedOnFailure(ssl.SSLSocket):
    """A socket that does not wait for the garbage collector when the handshake fails."""

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
    root_ca_path: Text | None = Field(None, description="file with the certificates to trust instead of the system's")
    insecure_skip_verify: bool = Field(False, description="accept any server certificate; only for trying out")

    def tls_context(self) -> ssl.SSLContext:
        """The context for a client; raises `Fatal` when a file cannot be used."""
        try:
            context = ssl.create_default_context(cafile=self.root_ca_path and reveal(self.root_ca_path))
            if self.certification_path:
                key_path = self.private_key_path and reveal(self.private_key_path)
                context.load_cert_chain(reveal(self.certification_path), key_path)
        except (OSError, ssl.SSLError) as failure:
            raise Fatal(f"TLS files cannot be used: {failure}") from failure
        context.sslsocket_class = _ClosedOnFailure
        if self.insecure_skip_verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context
