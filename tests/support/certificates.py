# SPDX-License-Identifier: Apache-2.0
"""Certificates for a test, made by openssl."""
import pathlib
import subprocess

KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def make_certificates(folder):
    """ca.pem, and what it signed for a server on loopback and for a client: NAME.pem, NAME.key; other.pem signed neither.
    Python 3.13 refuses authorities without key usage, and certificates without the key identifier of their authority."""
    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    for name in ("ca", "other"):
        openssl("req", "-x509", *KEY, "-days", "2", "-subj", f"/CN=test {name}", "-addext", "keyUsage=critical,keyCertSign",
                "-keyout", f"{name}.key", "-out", f"{name}.pem")
    (pathlib.Path(folder) / "names").write_text("subjectAltName=IP:127.0.0.1\nauthorityKeyIdentifier=keyid\n")
    for name in ("server", "client"):
        openssl("req", *KEY, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                "-extfile", "names", "-out", f"{name}.pem")
