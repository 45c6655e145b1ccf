# SPDX-License-Identifier: Apache-2.0
"""Whose compiled models are loaded: signed engines, trusted keys, and engines of anyone."""
import re

import onnx
import pytest

from onnxruntime_plugin import session
from onnxruntime_contexts import check_runs, compile_to, context_nodes, model, source  # noqa: F401
from trust_keys import keys  # noqa: F401

ONLY = "only engines signed by a trusted key are allowed, and "


def trusting(path, number=1, only="1", **more):
    return {"ingot_trusted_keys": str(path / f"pub{number}"), "ingot_trusted_only": only, **more}


@pytest.mark.parametrize("embed", [False, True])
def test_engine_signed_by_a_trusted_key_is_loaded_and_others_are_refused(source, keys, tmp_path, embed):
    target = compile_to(source, tmp_path / "s.onnx", embed, {"ingot_signing_key": str(keys / "key1")})
    check_runs(session(target, trusting(keys)))
    check_runs(session(target))  # a signature takes nothing away
    check_runs(session(target, trusting(keys, 2, only="0")))
    with pytest.raises(Exception, match=ONLY + "it is signed by .*, which is not one of the trusted keys"):
        session(target, trusting(keys, 2))


def test_embedded_engine_keeps_the_zeros_at_its_end(keys, tmp_path):
    """One signature in sixteen ends with a zero."""
    for seed in range(200):
        path = tmp_path / f"{seed}.onnx"
        onnx.save(model(seed), path)
        target = compile_to(path, tmp_path / "s.onnx", True, {"ingot_signing_key": str(keys / "key1")})
        node, = context_nodes(target)
        if node["ep_cache_context"][-1] == 0:
            check_runs(session(target, trusting(keys)), seed)
            return
    assert False, "no signature of 200 ends with a zero"


def test_engine_without_a_signature_is_refused_where_only_signed_ones_are_allowed(source, keys, tmp_path):
    target = compile_to(source, tmp_path / "s.onnx")
    with pytest.raises(Exception, match=f"loading the compiled part .*{ONLY}it is not signed"):
        session(target, trusting(keys))
    check_runs(session(target, trusting(keys, only="0", ingot_allow_engine_code="1")))


def test_model_that_is_not_compiled_is_refused_where_only_signed_ones_are_allowed(keys):
    with pytest.raises(Exception, match="the model is not compiled, and ingot_trusted_only allows only "
                                        "compiled models whose engine a trusted key has signed"):
        session(model(), trusting(keys))


def test_engine_that_was_changed_after_it_was_signed_is_refused(source, keys, tmp_path):
    target = compile_to(source, tmp_path / "s.onnx", False, {"ingot_signing_key": str(keys / "key1")})
    other = compile_to(source, tmp_path / "o.onnx")
    (tmp_path / "s_0.engine").write_bytes((tmp_path / "o_0.engine").read_bytes())
    with pytest.raises(Exception, match="is not the engine that the model was compiled with"):
        session(target, trusting(keys))
    check_runs(session(other))


def test_signed_engine_without_weights_takes_them_from_the_source(source, keys, tmp_path):
    target = compile_to(source, tmp_path / "s.onnx", False,
                        {"ingot_signing_key": str(keys / "key1"),
                         "nv_weight_stripped_engine_enable_experimental": "1"})
    assert context_nodes(target)[0]["ep_refit_table"]
    check_runs(session(target, trusting(keys), {"ep.context_source_model_path": str(source)}))


@pytest.mark.parametrize("options, text", [
    ({"ingot_trusted_only": "1"}, 'provider option "ingot_trusted_only" is set, but '
                                  '"ingot_trusted_keys" names no file'),
    ({"ingot_trusted_keys": "/no/such/keys"}, "ingot_trusted_keys: "),
    ({"ingot_signing_key": "/no/such/key"}, "ingot_signing_key: "),
])
def test_options_of_trust_that_are_wrong(options, text):
    with pytest.raises(Exception, match=re.escape(text)):
        session(model(), options)


def test_files_that_hold_no_keys_are_refused(source, keys, tmp_path):
    target = compile_to(source, tmp_path / "s.onnx")
    (keys / "bad").write_text("# a comment\nnonsense\n")
    with pytest.raises(Exception, match="trusted keys: .*line 2: expected a public key in PEM"):
        session(target, {"ingot_trusted_keys": str(keys / "bad")})
    with pytest.raises(Exception, match="signEngine"):
        compile_to(source, tmp_path / "t.onnx", False, {"ingot_signing_key": str(keys / "pub1")})
    assert not list(tmp_path.glob("t*"))
