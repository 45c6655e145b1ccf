# SPDX-License-Identifier: Apache-2.0
"""Signed engines: ingot sign, the options of trust, and the same from Python."""
import subprocess

import pytest

import ingot_command as ingot
from shim import package
from ingot_command import fails
from trtexec_command import DIGITS, run
from trust_keys import KEYS, keys  # noqa: F401

package.find()

import ingot as api  # noqa: E402

@pytest.fixture
def engine(tmp_path):
    ingot.call("build", DIGITS, "-o", tmp_path / "plain.engine")
    return tmp_path / "plain.engine"


def test_sign_and_trust(keys, engine, tmp_path):
    signed = tmp_path / "signed.engine"
    text = ingot.call("sign", engine, "--key", keys / "key1", "-o", signed)
    name = text.split("signed by key ")[1].strip()
    assert text.startswith(str(signed)) and len(name) == 16
    assert f"signed by key {name}" in ingot.call("inspect", signed)
    assert "signed" not in ingot.call("inspect", engine)
    trusted = ["--trusted-only", "--trusted-keys"]
    ingot.call("run", signed, *trusted, keys / "pub1", "--device=cpu")
    ingot.call("run", signed, "--device=cpu")
    code, text = fails("run", signed, *trusted, keys / "pub2")
    assert code == 1 and f"it is signed by key {name}, which is not one of the trusted keys" in text
    code, text = fails("run", engine, *trusted, keys / "pub1")
    assert code == 1 and "only engines signed by a trusted key are allowed, and it is not signed" in text
    code, text = fails("run", DIGITS, *trusted, keys / "pub1")
    assert code == 1 and "is a model, and --trustedOnly allows only engines that a trusted key has signed" in text
    code, text = fails("inspect", signed, "--trustedKeys", keys / "key1")
    assert code == 1 and f"{keys / 'key1'}: line 3: no Ed25519 public key in PEM" in text
    ingot.call("sign", signed, "--key", keys / "key2")  # in its place, instead of the first
    ingot.call("run", signed, "--trustedOnly", "--trustedKeys", keys / "pub2", "--device=cpu")
    # One flipped bit of the weights, though nothing else would notice.
    data = bytearray(signed.read_bytes())
    data[4096] ^= 1
    signed.write_bytes(data)
    code, text = fails("run", signed, "--trustedKeys", keys / "pub2", "--noVerifyWeights")
    assert code == 1 and "section weights does not match its SHA-256" in text


def test_what_sign_refuses(keys, engine, tmp_path):
    code, text = fails("sign", engine)
    assert code == 1 and "say with --key which private key signs; 'openssl genpkey" in text
    code, text = fails("sign", engine, "--key", keys / "pub1")
    assert code == 1 and f"{keys / 'pub1'}: no Ed25519 private key in PEM; make one with" in text
    before = engine.read_bytes()
    code, text = fails("sign", DIGITS, "--key", keys / "key1", "-o", engine)
    assert code == 1 and "not an Ingot engine" in text
    assert engine.read_bytes() == before


def test_trtexec_takes_only_signed_engines(keys, engine, tmp_path):
    ingot.call("sign", engine, "--key", keys / "key1")
    quick = ["--duration=0", "--iterations=1", "--warmUp=0"]
    run(f"--loadEngine={engine}", "--trustedOnly", f"--trustedKeys={keys / 'pub1'}", *quick)
    text = run(f"--loadEngine={engine}", "--trustedOnly", f"--trustedKeys={keys / 'pub2'}", *quick, code=1)
    assert "which is not one of the trusted keys" in text


def test_openssl_keys(engine, tmp_path):
    key = tmp_path / "made.pem"
    try:
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", key], check=True)
    except FileNotFoundError:
        pytest.skip("there is no openssl command")
    public = subprocess.run(["openssl", "pkey", "-in", key, "-pubout"], check=True, stdout=subprocess.PIPE).stdout
    (tmp_path / "pub").write_bytes(b"# who made it\nexpires: 2999-01-01\n" + public)
    ingot.call("sign", engine, "--key", key)
    ingot.call("run", engine, "--trustedOnly", "--trustedKeys", tmp_path / "pub", "--device=cpu")


def test_from_python(keys, engine):
    public, private = (keys / "pub1").read_text(), (keys / "key1").read_text()
    signed = api.sign_engine(engine.read_bytes(), private)
    runtime = api.Runtime(api.Logger(api.Logger.INTERNAL_ERROR))
    assert runtime.set_trusted_only(True) and runtime.set_trusted_keys(public)
    assert runtime.deserialize_cuda_engine(signed) is not None
    assert runtime.deserialize_cuda_engine(engine.read_bytes()) is None
    assert not runtime.set_trusted_keys("nonsense")
    assert runtime.deserialize_cuda_engine(signed) is not None
    assert runtime.set_trusted_keys(None)
    assert runtime.deserialize_cuda_engine(signed) is None
    with pytest.raises(ValueError, match="Ed25519"):
        api.sign_engine(engine.read_bytes(), public)
