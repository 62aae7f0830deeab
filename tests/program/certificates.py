"""Certificates for tests, made on the spot with the openssl command, so that none runs out."""

import subprocess
from pathlib import Path


def _openssl(folder, *arguments):
    subprocess.run(["openssl", *map(str, arguments)], cwd=folder, check=True, capture_output=True)


class Authority:
    """NAME.pem and NAME.key in a folder, and what it issues beside them."""

    def __init__(self, folder, name):
        self.folder = Path(folder)
        self.name = name
        _openssl(self.folder, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", 2,
                 "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem")

    @property
    def certificate(self):
        return self.folder / f"{self.name}.pem"

    def issue(self, subject):
        """(certificate, key) for localhost and 127.0.0.1."""
        (self.folder / "names.ext").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1")
        _openssl(self.folder, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={subject}",
                 "-keyout", f"{subject}.key", "-out", f"{subject}.csr")
        _openssl(self.folder, "x509", "-req", "-days", 2, "-in", f"{subject}.csr", "-CA", f"{self.name}.pem", "-CAkey",
                 f"{self.name}.key", "-CAcreateserial", "-extfile", "names.ext", "-out", f"{subject}.pem")
        return self.folder / f"{subject}.pem", self.folder / f"{subject}.key"
