# SPDX-License-Identifier: Apache-2.0
"""Cases of make_contrib.py: mixtures of experts."""
import numpy as np

from contrib_case import Case, values, whole

EXPERTS, HIDDEN, INTER = 5, 16, 24


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def swiglu(gate, up, alpha=1.0, beta=0.0, limit=np.inf):
    gate = np.minimum(gate, limit)
    return gate * sigmoid(alpha * gate) * (np.clip(up, -limit, limit) + beta)


def mixed(x, chosen, weights, expert):
    """The weighted results expert(row, index) of the chosen ones, in f64."""
    rows = x.reshape(-1, x.shape[-1]).astype(np.float64)
    out = [sum(w * expert(row, e) for e, w in zip(*both)) for row, both in zip(rows, zip(chosen, weights))]
    return np.array(out).reshape(*x.shape[:-1], -1).astype(np.float32)


def best(logits, k):
    at = np.argsort(-logits, -1, kind="stable")[:, :k]
    return at, np.take_along_axis(softmax(logits.astype(np.float64)), at, -1)


def of_floats():
    # Tokens that choose fewer experts than there are, and more; sizes known and not.
    for name, tokens, extra in (("few", (2,), {}), ("many", (7,), {}), ("few_dynamic", (2,), {"dynamic": ("x", "r")}),
                                ("many_dynamic", (7,), {"dynamic": ("x", "r")}), ("batch", (2, 3), {"dynamic": ("x", "r")})):
        count = int(np.prod(tokens))
        Case(f"MoE_{name}", "MoE",
             {"x": values(1, *tokens, HIDDEN), "r": values(2, count, EXPERTS), "w1": values(3, EXPERTS, INTER, HIDDEN),
              "b1": values(4, EXPERTS, INTER), "w2": values(5, EXPERTS, HIDDEN, INTER, low=-0.3, high=0.3),
              "b2": values(6, EXPERTS, HIDDEN)}, constants=("w1", "w2", "b1", "b2"), k=2, activation_type="relu",
             normalize_routing_weights=1, **extra)
    base = {"x": values(1, 3, HIDDEN), "r": values(2, 3, EXPERTS), "w1": values(3, EXPERTS, INTER, HIDDEN, low=-1, high=1),
            "b1": None, "w2": values(5, EXPERTS, HIDDEN, INTER, low=-0.3, high=0.3)}
    for activation in ("gelu", "silu", "identity"):
        Case(f"MoE_{activation}", "MoE", base, k=1, activation_type=activation)
    half = {k: None if v is None else v.astype(np.float16) for k, v in base.items()}
    Case("MoE_half", "MoE", half, k=3, activation_type="silu", normalize_routing_weights=1)
    glu = {**base, "w1": values(7, EXPERTS, 2 * INTER, HIDDEN, low=-1, high=1), "b1": values(8, EXPERTS, 2 * INTER)}
    Case("MoE_swiglu", "MoE", glu, k=2, activation_type="swiglu", swiglu_fusion=1, activation_alpha=1.702,
         activation_beta=1.0, swiglu_limit=0.7)

    def in_halves(x, r, w1, b1, w2):
        def expert(row, e):
            y = w1[e].astype(np.float64) @ row + b1[e]
            return w2[e] @ swiglu(y[:INTER], y[INTER:], 1.5)
        return mixed(x, *best(r, 2), expert)
    Case("MoE_swiglu_halves", "MoE", glu, k=2, activation_type="swiglu", swiglu_fusion=2, activation_alpha=1.5,
         oracle=in_halves)

    def apart(x, r, w1, w2, b2, w3, b3):
        def expert(row, e):
            return w2[e].astype(np.float64) @ swiglu(w1[e] @ row, w3[e] @ row + b3[e]) + b2[e]
        return mixed(x, *best(r, 2), expert)
    Case("MoE_third", "MoE", {**base, "b2": values(9, EXPERTS, HIDDEN), "w3": values(10, EXPERTS, INTER, HIDDEN),
                              "b3": values(11, EXPERTS, INTER)}, k=2, activation_type="swiglu", oracle=apart)

    def relu2(x, r, w1, w2):
        return mixed(x, *best(r, 2), lambda row, e: w2[e].astype(np.float64) @ np.maximum(w1[e] @ row, 0) ** 2)
    Case("MoE_relu2", "MoE", base, k=2, activation_type="relu2", oracle=relu2)

    def late_limit(x, r, w1, b1, w2):
        def expert(row, e):
            y = (w1[e].astype(np.float64) @ row + b1[e]).reshape(INTER, 2)
            gate = np.minimum(y[:, 0] * sigmoid(y[:, 0]), 0.5)
            return w2[e] @ (gate * np.clip(y[:, 1], -0.5, 0.5))
        return mixed(x, *best(r, 2), expert)
    Case("MoE_late_limit", "MoE", glu, k=2, activation_type="swiglu", swiglu_fusion=1, swiglu_limit=0.5,
         swiglu_limit_after_activation=1, oracle=late_limit)

    def geglu(x, r, w1, b1, w2):
        def expert(row, e):
            y = (w1[e].astype(np.float64) @ row + b1[e]).reshape(INTER, 2)
            gate = 0.5 * y[:, 0] * (1 + np.tanh(np.sqrt(2 / np.pi) * (y[:, 0] + 0.044715 * y[:, 0] ** 3)))
            return w2[e] @ (gate * y[:, 1])
        return mixed(x, *best(r, 2), expert)
    Case("MoE_geglu", "MoE", glu, k=2, activation_type="geglu", swiglu_fusion=1, oracle=geglu)

    def sparse(x, r, w1, w2):
        logits, chosen, weights = r.astype(np.float64).copy(), [], []
        for _ in range(2):
            top = logits.argmax(-1)
            largest = logits.max(-1, keepdims=True)
            far = (largest - r) / np.maximum(np.abs(r), largest) > 0.02
            share = softmax(np.where(far, -np.inf, logits))
            chosen.append(top)
            weights.append(share[np.arange(len(r)), top])
            logits[np.arange(len(r)), top] = -np.inf
        return mixed(x, np.stack(chosen, -1), np.stack(weights, -1),
                     lambda row, e: w2[e].astype(np.float64) @ np.maximum(w1[e] @ row, 0))
    close = np.array([[1.0, 1.01, 0.3, 1.005, -2], [3, -1, 2.99, 0, 1], [2, 1.5, 1, 0.5, 0.49]], np.float32)
    Case("MoE_sparse_mixer", "MoE", {**base, "r": close}, k=2, activation_type="relu", use_sparse_mixer=1, oracle=sparse)


def unpacked(packed, bits, count):
    parts = [packed >> shift & (1 << bits) - 1 for shift in range(0, 8, bits)]
    return np.stack(parts, -1).reshape(*packed.shape[:-1], -1)[..., :count].astype(np.float64)


def numbers(packed, scales, zeros, bits, block):
    """Dequantised matrices, in f64."""
    q = unpacked(packed, bits, packed.shape[-1] * 8 // bits)
    zero = np.full(scales.shape, 2.0 ** (bits - 1)) if zeros is None else unpacked(zeros, bits, scales.shape[-1])
    spread = (lambda v: np.repeat(v, block, -1)) if block else (lambda v: v[..., None])
    return (q - spread(zero)) * spread(scales.astype(np.float64))


def of_bits():
    def case(name, bits, block=0, zero=False, tokens=3, gated=False, dtype=np.float32, **extra):
        # 64 elements a row: blocks of 32, and packed rows of whole bytes.
        hidden, inter = 64, 32
        wide = 2 * inter if gated else inter

        def matrices(seed, rows, depth):
            scales = (EXPERTS, rows, depth // block) if block else (EXPERTS, rows)
            packed = (EXPERTS, rows, -(-(depth // block) * bits // 8)) if block else (EXPERTS, -(-rows * bits // 8))
            zeros = whole(seed + 2, 0, 256, *packed) if zero else None
            return (whole(seed, 0, 256, EXPERTS, rows, depth * bits // 8),
                    values(seed + 1, *scales, low=0.2 / 2**bits, high=0.4 / 2**bits).astype(dtype), zeros)
        w1, s1, z1 = matrices(20, wide, hidden)
        w2, s2, z2 = matrices(30, hidden, inter)
        feeds = {"x": values(1, tokens, hidden).astype(dtype), "r": values(2, tokens, EXPERTS).astype(dtype), "w1": w1,
                 "s1": s1, "b1": values(4, EXPERTS, wide).astype(dtype), "w2": w2, "s2": s2, "b2": None,
                 "w3": None, "s3": None, "b3": None, "z1": z1, "z2": z2, **extra.pop("feeds", {})}
        extra = {"swiglu_fusion": 1, "activation_type": "swiglu", "activation_alpha": 1.702, "activation_beta": 1.0,
                 **extra} if gated else {"activation_type": "silu", **extra}
        if block:
            extra["block_size"] = block

        def exact(x, r, w1, s1, b1, w2, s2, z1=None, z2=None):
            first, second = numbers(w1, s1, z1, bits, block), numbers(w2, s2, z2, bits, block)

            def expert(row, e):
                y = first[e] @ row + b1[e]
                return second[e] @ (swiglu(y[::2], y[1::2], 1.702, 1) if gated else y * sigmoid(y))
            at, weights = best(r, 2)
            return mixed(x, at, weights / weights.sum(-1, keepdims=True), expert)
        if bits == 8 and block:  # ONNX Runtime rounds the activations to bytes
            extra["oracle"] = exact
        Case(f"QMoE_{name}", "QMoE", feeds, constants=("w1", "s1", "b1", "w2", "s2", "z1", "z2"), k=2,
             expert_weight_bits=bits, normalize_routing_weights=1, **extra)

    for bits in (4, 8):
        case(f"{bits}_rows", bits)
        case(f"{bits}_rows_zero", bits, zero=True, tokens=2)
        case(f"{bits}_blocks", bits, block=32, dynamic=("x", "r"))
        case(f"{bits}_blocks_zero", bits, block=32, zero=True, tokens=1, gated=True, dynamic=("x", "r"))
    case("2_blocks_zero", 2, block=16, zero=True)
    case("half", 4, block=32, gated=True, dtype=np.float16)
    case("router_weights", 4, block=32, feeds={"z3": None, "rw": values(40, 3, EXPERTS, low=0, high=1)})


def router():
    for name, attributes in (("groups", dict(n_group=3, topk_group=2, group_topk=2, top_k=4)),
                             ("one_group", dict(top_k=2, router_sentinel=-50.0))):
        Case(f"MoEGroupRouter_{name}", "MoEGroupRouter",
             {"x": values(50, 2, 3, 12), "b": values(51, 12, low=-0.2, high=0.2)}, dynamic=("x",), **attributes)

    def scores(x, b, w=None):
        logits = x.astype(np.float64) if w is None else x.astype(np.float64) @ w.T
        s = sigmoid(logits)
        return (s + b).astype(np.float32), s.astype(np.float32)
    Case("MoEGroupRouter_scores", "MoEGroupRouter", {"x": values(50, 3, 12), "b": values(51, 12)},
         outputs=[False, True, True], top_k=2, oracle=scores)
    Case("MoEGroupRouter_projection", "MoEGroupRouter",
         {"x": values(52, 2, 256, low=-0.2, high=0.2), "b": values(51, 6), "w": values(53, 6, 256, low=-0.2, high=0.2)},
         outputs=[False, True, True], top_k=2, oracle=scores)


def experts():
    of_floats()
    of_bits()
    router()
