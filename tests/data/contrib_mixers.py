# SPDX-License-Identifier: Apache-2.0
"""Cases of make_contrib.py: gates, gated norms, linear attention, hyper-connections, n-grams, and
projections joined with their norms or activations."""
import numpy as np

from contrib_case import Case, f32, heads, values, whole

F16 = np.float16
f = np.float32


def mixers():
    gates()
    delta_net()
    streams()
    ngrams()
    projections()
    swi_glu()
    dropouts()


def halves(inputs):
    """The same inputs with floats of 16 bits."""
    return {k: v.astype(F16) if v is not None and v.dtype == np.float32 else v
            for k, v in inputs.items()}


def both(name, op, inputs, **rest):
    """A case of f32, with symbolic sizes, and one of f16."""
    dynamic = rest.pop("dynamic", tuple(inputs))
    Case(name, op, inputs, dynamic=dynamic, **rest)
    Case(f"{name}_half", op, halves(inputs), **rest)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gates():
    x = values(1, 2, 3, 10)
    norm = {"x": x, "scale": values(2, 5), "gate": values(3, 2, 3, 10)}
    both("GatedRMSNorm", "GatedRMSNorm", norm, dynamic=("x:0", "x:1", "gate"))
    Case("GatedRMSNorm_sigmoid", "GatedRMSNorm", {**norm, "scale": values(4, 10)}, epsilon=0.01,
         activation="sigmoid", dynamic=("x", "gate"))
    gate = {"a": values(5, 2, 3, 4), "bias": values(6, 4), "scale": values(7, 4, low=-2, high=0),
            "b": values(8, 2, 3, 4)}
    Case("LinearAttentionGate", "LinearAttentionGate", gate, outputs=2,
         dynamic=("a", "b", "bias"))
    Case("LinearAttentionGate_decay", "LinearAttentionGate", {**gate, "b": None})
    Case("LinearAttentionGate_half", "LinearAttentionGate",
         {**gate, "a": gate["a"].astype(F16), "b": gate["b"].astype(F16)}, outputs=2)
    both("ScaledSiLU", "ScaledSiLU", {"x": x}, alpha=0.3)
    Case("ScaledSiLU_scale", "ScaledSiLU", {"x": x.astype(F16), "scale": f32(1.7)}, alpha=0.3)
    add = {"x": x, "y": values(9, 2, 3, 10), "gate": values(10, 2, 3, 1)}
    both("GatedAdd", "GatedAdd", add)
    Case("GatedAdd_projected", "GatedAdd", {**add, "gate": values(11, 2, 3, 7), "w": values(12, 7, 1)},
         dynamic=("x", "gate"), oracle=lambda x, y, gate, w: (x + y * sigmoid(gate @ w)).astype(f))
    share = {"q": heads(13, 2, 3, 2 * 4), "k": heads(14, 2, 3, 2 * 4), "v": heads(15, 2, 3, 6 * 3),
             "s": heads(16, 2, 6, 4, 3), "decay": values(17, 2, 3, 6, low=-1, high=0),
             "beta": values(18, 2, 3, 6, low=0, high=1)}
    Case("LinearAttention_shared", "LinearAttention", share, outputs=2, q_num_heads=2,
         kv_num_heads=6, dynamic=("q:1", "k:1", "v:1", "decay:1", "beta:1"))
    Case("LinearAttention_shared_keys", "LinearAttention",
         {**share, "q": heads(13, 2, 3, 6 * 4), "k": heads(14, 2, 3, 3 * 4)}, outputs=2,
         q_num_heads=6, kv_num_heads=6, update_rule="gated_delta", scale=0.4)


def delta_net():
    tokens, few, many, size, width = 6, 2, 4, 3, 5
    q, k, v = heads(1, tokens, few, size), heads(2, tokens, few, size), heads(3, tokens, many, width)
    base = {"q": q, "k": k, "v": v, "cu": None, "decay": values(4, tokens, many, low=-1, high=0),
            "beta": values(5, tokens, many, low=0, high=1), "s": heads(6, 2, many, width, size)}
    each = {**base, "decay": values(7, tokens, many, size, low=-1, high=0)}
    offsets = np.array([0, 2, 6], np.int32)
    log, bias = heads(8, many), heads(9, many)

    def case(name, inputs, outputs=2, **rest):
        Case(f"GatedDeltaNet{name}", "GatedDeltaNet", inputs, outputs=outputs, **rest)

    axes = ("q:0", "k:0", "v:0", "cu:0", "decay:0", "beta:0", "s:0")
    case("", base, dynamic=axes)
    case("_linear", {**base, "decay": None, "beta": None}, update_rule="linear")
    case("_gated", {**base, "beta": None}, update_rule="gated", scale=0.3)
    case("_delta", {**base, "decay": None}, update_rule="delta", outputs=1)
    case("_each", each, qk_l2_norm=1, chunk_size=32)
    case("_ragged", {**base, "cu": offsets}, dynamic=axes)
    case("_ragged_each", {**each, "cu": np.array([0, 1, 1, 6], np.int32), "s": None})
    case("_softplus", {**base, "a": log, "bias": bias}, gate_activation="softplus",
         beta_activation="sigmoid", dynamic=axes)
    case("_softplus_each", {**each, "a": log, "bias": bias}, gate_activation="qwen")
    for name, shape in (("", (many, size)), ("_flat", (many * size,))):
        case(f"_bounded{name}", {**each, "a": log, "bias": heads(10, *shape)},
             gate_activation="sigmoid" if name else "kda", gate_lower_bound=-3.0)
    batched = {k: None if v is None or k == "cu" else v.reshape(2, 3, *v.shape[1:])
               for k, v in base.items() if k != "s"}
    case("_batched", batched, dynamic=("q:1", "k:1", "v:1", "decay:1", "beta:1"))
    packed = np.concatenate([x.reshape(tokens, -1) for x in (q, k, v)], 1)
    case("_packed", {**base, "q": packed, "k": None, "v": None}, dynamic=("q:0", "s:0"))
    case("_packed_batched", {**batched, "q": packed.reshape(2, 3, -1), "k": None, "v": None,
                             "s": base["s"]})
    half = {key: base[key].astype(F16) for key in "qkv"}
    case("_half", {**base, **half})
    update = {"a": None, "bias": None, "count": np.array([3, 2], np.int32)}
    case("_updates", {**base, **update}, outputs=3, state_update_capacity=4, dynamic=axes)
    case("_updates_each", {**each, "cu": offsets, **update}, outputs=3, state_update_capacity=4,
         qk_l2_norm=1)
    case("_updates_gone", {**base, **update, "active": np.array([0], np.int32)}, outputs=3,
         state_update_capacity=2)
    conv = {"x": values(11, 7, 4), "w": values(12, 4, 1, 3), "cu": np.array([0, 2, 7], np.int32),
            "b": values(13, 4), "s": values(14, 2, 4, 2)}
    both("VarlenCausalConvWithState", "VarlenCausalConvWithState", conv, outputs=2,
         activation="silu", dynamic=("x:0", "cu", "s:0"))
    Case("VarlenCausalConvWithState_dilated", "VarlenCausalConvWithState",
         {**conv, "b": None, "s": values(15, 2, 4, 6), "count": np.array([5, 3], np.int32)},
         outputs=3, dilation=3, state_update_capacity=4, dynamic=("x:0", "cu", "s:0", "count"))


def post_mixed(x, block, gate, mix=None):
    streams = x if mix is None else np.einsum("...ck,...ch->...kh", mix, x)
    return streams + gate * block[..., None, :]


def normed(x, scale, epsilon):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * scale


def low_rank_mix(x, scale, down, up, inject, block=None, gate=None):
    """The mixture of two branches, rounding each step to the type of x."""
    t = x.dtype.type

    def product(a, b):
        return t(a.astype(np.float64) @ b.astype(np.float64))

    s = x.reshape(*x.shape[:-1], 2, -1).astype(f)
    if block is not None:
        s = post_mixed(s, block.astype(f), gate.astype(f)[..., None]).astype(t).astype(f)
    n = normed(s, scale.reshape(2, -1).astype(f), f(1e-4)).astype(t)
    flat = n.reshape(x.shape)
    z = t(f(0.7) * product(flat, down).astype(f))
    hidden = t(z.astype(f) * t(sigmoid(z.astype(f))).astype(f))
    g = t(sigmoid(product(hidden, up).astype(f))).reshape(n.shape)
    pre = t(f(0.5) * (n.astype(f) * g.astype(f)).sum(-2))
    logits = t(product(flat, inject).astype(f) / f(3))
    post = t(t(sigmoid(logits.astype(f))).astype(f) * f(2))
    return pre, post, s.astype(t).reshape(x.shape)


def streams():
    x, grouped = values(1, 2, 3, 8), values(1, 2, 3, 2, 4)
    scales = {"": (2, 4), "_flat": (8,), "_one": (4,)}
    for name, shape in scales.items():
        scale = values(2, *shape)
        Case(f"BranchwiseRMSNorm{name}", "BranchwiseRMSNorm", {"x": grouped, "scale": scale},
             epsilon=1e-3, dynamic=("x:0", "x:1"))
        Case(f"BranchwiseRMSNorm{name}_half", "BranchwiseRMSNorm",
             {"x": x.astype(F16), "scale": scale}, num_branches=2)
    both("BranchwiseRMSNorm_plain", "BranchwiseRMSNorm", {"x": x}, num_branches=2)
    gate = {"": (2,), "_column": (2, 1), "_each": (2, 4), "_whole": (8,)}
    for name, shape in gate.items():
        mix = values(3, 2, 3, *shape)
        Case(f"HyperConnectionPreMix{name}", "HyperConnectionPreMix", {"x": x, "gate": mix},
             num_branches=2, reduction_scale=0.7, dynamic=("x", "gate:0", "gate:1"))
        if name == "_whole":
            continue
        Case(f"HyperConnectionPreMix{name}_half", "HyperConnectionPreMix",
             {"x": grouped.astype(F16), "gate": mix})
        block = values(4, 2, 3, 4)
        Case(f"HyperConnectionPostMix{name}", "HyperConnectionPostMix",
             {"x": x, "block": block, "gate": mix, "mix": values(5, 2, 3, 2, 2)}, num_branches=2,
             dynamic=("x", "block", "mix"))
        Case(f"HyperConnectionPostMix{name}_half", "HyperConnectionPostMix",
             {"x": grouped.astype(F16), "block": block.astype(F16), "gate": mix})
    mix = {"x": x, "scale": values(6, 8), "down": heads(7, 8, 3), "up": heads(8, 3, 8),
           "inject": heads(9, 8, 2)}
    attributes = dict(num_branches=2, epsilon=1e-4, silu_alpha=0.7, reduction_scale=0.5,
                      gate_div=3.0, gate_mul=2.0, oracle=low_rank_mix)
    both("HyperConnectionLowRankMix", "HyperConnectionLowRankMix",
         {**mix, "block": values(10, 2, 3, 4), "gate": values(11, 2, 3, 2)}, outputs=3,
         dynamic=("x", "block", "gate"), **attributes)
    attributes["oracle"] = lambda **inputs: low_rank_mix(**inputs)[:2]
    Case("HyperConnectionLowRankMix_first", "HyperConnectionLowRankMix", mix, outputs=2,
         **attributes)
    engram = {"key": values(12, 1, 3, 2, 5), "query": values(13, 1, 3, 2, 5),
              "value": values(14, 1, 3, 5), "ks": values(15, 2, 5), "qs": values(16, 2, 5)}
    engram["key"][0, 1, 1] = 0
    Case("EngramGate", "EngramGate", engram, dynamic=("key", "query", "value"))
    Case("EngramGate_normed", "EngramGate", {**engram, "cs": values(17, 2, 5)}, outputs=2,
         epsilon=1e-3)
    Case("EngramGate_half", "EngramGate", halves({**engram, "cs": values(17, 2, 5)}), outputs=2)


def ngrams():
    for t in (np.int32, np.int64):
        name = f"NGramHashMapping_{np.dtype(t).name}"
        common = dict(pad_id=1, n_head_per_ngram=2, max_ngram_size=4)
        tables = {"m": np.array([2**30 + 7, 2**29 + 5, 12345677, 99], t),
                  "sizes": np.array([7, 11, 13, 17, 19, 23], t)}
        past = whole(2, 0, 6, 2, 3, dtype=t)
        more = {"past": past, "offsets": np.array([0, 7, 18, 31, 48, 67], t),
                "end": np.array(3, t)}
        ids = {"ids": whole(1, 0, 6, 2, 7, dtype=t), **tables}
        segments = {"segments": np.sort(whole(3, 0, 3, 2, 7, dtype=np.int32), 1)}
        Case(name, "NGramHashMapping", ids, outputs=2, **common)
        Case(f"{name}_past", "NGramHashMapping", {**ids, **more}, outputs=2, dynamic=("ids", "past"),
             **common)
        Case(f"{name}_end", "NGramHashMapping",
             {**ids, "past": None, "offsets": None, "end": more["end"]}, reset_on_eos=1, **common)
        Case(f"{name}_segments", "NGramHashMapping", {**ids, **more, **segments}, outputs=2,
             reset_on_eos=1, dynamic=("ids", "segments"), **common)
        ids = {"ids": whole(4, 0, 6, 9, dtype=t), **tables, "cu": np.array([0, 2, 9], np.int32)}
        segments = {"segments": whole(5, 0, 2, 9, dtype=np.int32),
                    "past_segments": whole(6, 0, 2, 2, 3, dtype=np.int32)}
        Case(f"Varlen{name}", "VarlenNGramHashMapping", ids, outputs=2, dynamic=("ids", "cu"),
             **common)
        Case(f"Varlen{name}_segments", "VarlenNGramHashMapping", {**ids, **more, **segments},
             outputs=3, reset_on_eos=1, dynamic=("ids", "cu", "past", "segments"), **common)
        Case(f"Varlen{name}_chunk", "VarlenNGramHashMapping",
             {**ids, "past": None, "offsets": None, "end": None, "segments": segments["segments"],
              "past_segments": None, "count": np.array([5, 3], np.int32)}, outputs=4,
             state_update_capacity=4, **common)


def weights(q, scale, k, block):
    """The numbers that codes of 4 bits, the first in the low half of a byte, or of 8 stand for."""
    bits = q.shape[-1] * 8 // block
    codes = q if bits == 8 else np.stack([q & 15, q >> 4], -1)
    codes = codes.reshape(q.shape[0], -1, block).astype(np.float64) - 2**(bits - 1)
    return (codes * scale.reshape(q.shape[0], -1, 1)).reshape(q.shape[0], -1)[:, :k]


def silu(x):
    return x * sigmoid(x)


def mlp(a, gate, gs, up, us, skip=None, norm=None, gb=0, ub=0, epsilon=1e-5):
    t = a.dtype
    x = a if skip is None else a + skip
    y = x.astype(np.float64)
    y = y if norm is None else normed(y, norm, epsilon).astype(t).astype(np.float64)
    k = a.shape[-1]
    left, right = (y @ weights(q, s, k, 16).T + b for q, s, b in ((gate, gs, gb), (up, us, ub)))
    result = (silu(left) * right).astype(t)
    return result if skip is None else (result, x)


def qkv(a, norm, q, qs, k, ks, v, vs, skip=None, qb=0, kb=0, vb=0):
    x = a if skip is None else a + skip
    y = normed(x.astype(np.float64), norm, 1e-6).astype(a.dtype).astype(np.float64)
    parts = tuple((y @ weights(w, s, a.shape[-1], 16).T + b).astype(a.dtype)
                  for w, s, b in ((q, qs, qb), (k, ks, kb), (v, vs, vb)))
    return parts if skip is None else (*parts, x)


def projections():
    k, n, blocks = 40, 5, 3
    a, skip, norm = heads(1, 2, 3, k), heads(2, 2, 3, k), values(3, k)

    def matrix(seed, bits, rows=n):
        return (whole(seed, 0, 256, rows, blocks, 2 * bits),
                values(seed + 20, rows, blocks, low=0.01, high=0.06))

    for bits in (4, 8):
        (gate, gs), (up, us) = matrix(4, bits), matrix(5, bits)
        both_of = {"gate": gate, "gs": gs, "gb": heads(6, n), "up": up, "us": us, "ub": heads(7, n)}
        fixed = ("norm", *both_of)
        sizes = dict(K=k, N=n, bits=bits, block_size=16, activation="silu", oracle=mlp)
        name = f"MatMulNBitsMlp_{bits}"
        Case(name, "MatMulNBitsMlp",
             {"a": a, "skip": None, "norm": None, **both_of, "gb": None, "ub": None},
             constants=fixed, dynamic=("a:0", "a:1"), **sizes)
        Case(f"{name}_norm", "MatMulNBitsMlp", {"a": a, "skip": None, "norm": norm, **both_of},
             constants=fixed, **{**sizes, "epsilon": 0.01,
                                 "oracle": lambda **inputs: mlp(**inputs, epsilon=0.01)})
        Case(f"{name}_skip", "MatMulNBitsMlp", {"a": a, "skip": skip, "norm": norm, **both_of},
             outputs=2, constants=fixed, dynamic=("a", "skip"), **sizes)
    Case("MatMulNBitsMlp_half", "MatMulNBitsMlp",
         halves({"a": a, "skip": skip, "norm": norm, **both_of}), outputs=2, constants=fixed,
         **sizes)
    parts = {}
    for i, part in enumerate("qkv"):
        rows = n if part == "q" else 3
        parts[part], parts[f"{part}s"] = matrix(8 + i, 4, rows)
        parts[f"{part}b"] = heads(11 + i, rows)
    sizes = dict(K=k, Nq=n, Nkv=3, block_size=16, oracle=qkv, constants=("norm", *parts))
    plain = {key: None if key.endswith("b") else x for key, x in parts.items()}
    Case("MatMulNBitsQkv", "MatMulNBitsQkv", {"a": a, "skip": None, "norm": norm, **plain},
         outputs=3, dynamic=("a:0", "a:1"), **sizes)
    both("MatMulNBitsQkv_skip", "MatMulNBitsQkv", {"a": a, "skip": skip, "norm": norm, **parts},
         outputs=4, dynamic=("a", "skip"), **sizes)
    products()


def fast_gelu(x):
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def products():
    x, w, b = heads(1, 2, 3, 4), heads(2, 4, 5), heads(3, 5)

    def product(x, w, b=0):
        return fast_gelu(x.astype(np.float64) @ w + b).astype(x.dtype)

    both("GemmFastGelu", "GemmFastGelu", {"x": x, "w": w}, oracle=product)
    Case("GemmFastGelu_bias", "GemmFastGelu", {"x": x, "w": w, "bias": b},
         oracle=lambda x, w, bias: product(x, w, bias))
    a = {"a": heads(4, 2, 4, 3), "b": heads(5, 2, 5, 4)}

    def softmax(x, axis):
        e = np.exp(x - x.max(axis, keepdims=True))
        return (e / e.sum(axis, keepdims=True)).astype(f)

    def turned(a, b):
        return a.swapaxes(1, 2).astype(np.float64) @ b.swapaxes(1, 2)

    common = dict(transA=1, transB=1)
    Case("FusedMatMulActivation", "FusedMatMulActivation", a, activation="Softmax", alpha=0.7,
         oracle=lambda a, b: softmax(0.7 * turned(a, b), -1), dynamic=("a", "b"), **common)
    Case("FusedMatMulActivation_axis", "FusedMatMulActivation", a, activation="Softmax",
         activation_axis=1, oracle=lambda a, b: softmax(turned(a, b), 1), **common)
    Case("FusedMatMulActivation_leaky", "FusedMatMulActivation", halves(a), activation="LeakyRelu",
         activation_alpha=0.2, **common,
         oracle=lambda a, b: np.where(turned(a, b) < 0, 0.2, 1).astype(F16) * turned(a, b).astype(F16))
    Case("FusedMatMulActivation_selu", "FusedMatMulActivation", a, activation="Selu",
         activation_alpha=1.5, activation_gamma=1.1, **common,
         oracle=lambda a, b: 1.1 * np.where(turned(a, b) < 0, 1.5 * np.expm1(turned(a, b)),
                                            turned(a, b)).astype(f))
    Case("FusedMatMulActivation_batch", "FusedMatMulActivation",
         {"a": heads(6, 4, 2, 6), "b": heads(7, 6, 2, 5)}, activation="Relu", transBatchA=1,
         transBatchB=1, oracle=lambda a, b: np.maximum(np.einsum("mbk,kbn->bmn", a, b), 0).astype(f))


def swi_glu_of(gate, up, limit=0.0, activation_alpha=1.0, activation_beta=0.0, round_activation=0):
    g, u = gate.astype(np.float64), up.astype(np.float64)
    if limit > 0:
        g, u = np.minimum(g, limit), np.clip(u, -limit, limit)
    y = g * sigmoid(activation_alpha * g)
    y = y.astype(gate.dtype).astype(np.float64) if round_activation else y
    return (y * (u + activation_beta)).astype(gate.dtype)


def swi_glu():
    gate, up = values(1, 2, 3, 5, low=-9, high=9), values(2, 2, 3, 5, low=-9, high=9)
    both("SwiGLU", "SwiGLU", {"gate": gate, "up": up}, oracle=swi_glu_of)
    more = dict(limit=3.0, activation_alpha=1.702, activation_beta=1.0)
    Case("SwiGLU_clamped", "SwiGLU", {"gate": gate, "up": up}, **more,
         oracle=lambda gate, up: swi_glu_of(gate, up, **more))
    Case("SwiGLU_rounded", "SwiGLU", halves({"gate": gate, "up": up}), round_activation=1,
         oracle=lambda gate, up: swi_glu_of(gate, up, round_activation=1))
    Case("SwiGLU_halves", "SwiGLU", {"gate": np.concatenate([gate, up], -1)}, dynamic=("gate",),
         limit=-1.0, oracle=lambda gate: swi_glu_of(gate[..., :5], gate[..., 5:]))
    x, w = heads(3, 2, 3, 4).astype(F16), heads(4, 4, 3 + 2 * 5).astype(F16)

    def router(x, w):
        y = (x.astype(np.float64) @ w.astype(np.float64)).astype(F16)
        return y[..., :3], swi_glu_of(y[..., 3:8], y[..., 8:], **more)

    Case("RouterGateUpProj", "RouterGateUpProj", {"x": x, "w": w}, outputs=2, router_size=3,
         dynamic=("x", "w:0"), oracle=router, **more)


def dropouts():
    x, skip = values(1, 2, 3, 11), values(2, 2, 3, 11)
    words = np.full(3, 2**32 - 1, np.uint32)
    end = {"ratio": f32(0.3), "training": np.array(False)}
    for name, mask in (("BiasDropout", np.ones(x.shape, bool)), ("BitmaskBiasDropout", words)):
        both(name, name, {"x": x, "b": values(3, 11), "skip": skip, **end}, outputs=2,
             constants=tuple(end), dynamic=("x", "skip"),
             oracle=lambda x, b, skip, mask=mask, **_: (x + b + skip, mask))
        Case(f"{name}_plain", name, {"x": x, "b": skip}, oracle=lambda x, b: x + b)
    Case("BitmaskDropout", "BitmaskDropout", {"x": x, **end}, outputs=2, constants=tuple(end),
         dynamic=("x",), oracle=lambda x, **_: (x, words))
    Case("BitmaskDropout_plain", "BitmaskDropout", {"x": x}, oracle=lambda x: x)
