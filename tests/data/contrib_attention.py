# SPDX-License-Identifier: Apache-2.0
"""Cases of make_contrib.py: attention on packed rows and on positions, and what surrounds attention."""
import math

import numpy as np

from contrib_caches import attend, caches, i32, merge, softmax_of, split, with_typed_scores
from contrib_case import Case, heads, whole


# --- packed batches

def offsets(counts, length):
    """Places of the tokens of sequences with these lengths, then those of the padding."""
    tokens = [b * length + s for b, n in enumerate(counts) for s in range(n)]
    padding = [b * length + s for b, n in enumerate(counts) for s in range(n, length)]
    return i32(tokens + padding).reshape(len(counts), length)


def remove_padding(x, counts):
    rows = np.concatenate([x[b, :n] for b, n in enumerate(counts)])
    sums = i32(np.concatenate([[0], np.cumsum(counts)]))
    return rows, offsets(counts, x.shape[1]), sums, i32([max(counts)])


def restore_padding(x, offset):
    y = np.zeros((offset.size, x.shape[1]), x.dtype)
    for row, place in zip(x, offset.ravel()):
        y[place] = row
    return y.reshape(*offset.shape, -1)


def packed(qkv, count, sums, scale=None, bias=None):
    """Each sequence by itself: rows q, k, v between neighbours in `sums`."""
    out = []
    for b in range(len(sums) - 1):
        rows = slice(sums[b], sums[b + 1])
        q, k, v = (split(x[None, rows], count) for x in qkv)
        n = q.shape[2]
        extra = 0 if bias is None else bias[min(b, len(bias) - 1):][:1, :, :n, :n].astype(np.float64)
        out.append(merge(attend(q, k, v, scale, extra))[0])
    return np.concatenate(out)


def packed_batches():
    counts, length = [2, 5, 1], 5
    offset, sums = offsets(counts, length), i32([0, 2, 7, 8])
    for half in (False, True):
        t, name = (np.float16, "_half") if half else (np.float32, "")
        x = heads(1, 3, length, 6).astype(t)
        dynamic = () if half else ("x", "counts")
        Case(f"RemovePadding{name}", "RemovePadding", {"x": x, "counts": i32(counts)}, outputs=4,
             dynamic=dynamic, oracle=remove_padding)
        Case(f"RestorePadding{name}", "RestorePadding",
             {"x": heads(2, 8, 6).astype(t), "offset": offset},
             dynamic=() if half else ("x", "offset"), oracle=restore_padding)
    Case("RemovePadding_none", "RemovePadding", {"x": heads(3, 2, 3, 4), "counts": i32([3, 3])},
         outputs=[True, True], oracle=lambda **v: remove_padding(**v)[:2])
    packed_attention(offset, sums, length)
    packed_multi_head(offset, sums, length)


def packed_attention(offset, sums, length):
    def case(name, t=np.float32, sizes=None, extra=None, dynamic=(), **attributes):
        width = sum(sizes) if sizes else 24

        def oracle(x, w, b, offset, sums, bias=None):
            y = x.astype(np.float64) @ w.astype(np.float64) + b
            at = np.cumsum(sizes or [8, 8, 8])[:2]
            return packed(np.split(y, at, 1), 2, sums, attributes.get("scale"), bias).astype(t)

        more = {"qkv_hidden_sizes": sizes} if sizes else {}
        Case(f"PackedAttention{name}", "PackedAttention",
             {"x": heads(4, 8, 7).astype(t), "w": heads(5, 7, width).astype(t),
              "b": heads(6, width).astype(t), "offset": offset, "sums": sums,
              "bias": None if extra is None else extra.astype(t)},
             dynamic=dynamic, oracle=oracle, num_heads=2, **attributes, **more)

    case("", dynamic=("x", "offset", "sums"))
    case("_half", np.float16)
    case("_sizes", sizes=[8, 8, 12], scale=0.4)
    case("_bias", extra=heads(7, 3, 2, length, length))
    case("_bias_shared", extra=heads(8, 1, 2, length, length))
    case("_bias_heads", extra=heads(9, 3, 1, length, length), dynamic=("offset",))


def packed_multi_head(offset, sums, length):
    def case(name, t=np.float32, merged=False, projection=False, values=8, extra=None, dynamic=(),
             **attributes):
        def oracle(q, offset, sums, k=None, v=None, b=None, bias=None):
            qkv = [q[:, :, i].reshape(8, -1) for i in range(3)] if merged else [q, k, v]
            if b is not None:
                at = np.cumsum([x.shape[1] for x in qkv])[:2]
                qkv = [x + y for x, y in zip(qkv, np.split(b, at))]
            return packed(qkv, 2, sums, attributes.get("scale"), bias).astype(t)

        q = heads(10, 8, 2, 3, 4) if merged else heads(10, 8, 8)
        Case(f"PackedMultiHeadAttention{name}", "PackedMultiHeadAttention",
             {"q": q.astype(t), "k": None if merged else heads(11, 8, 8).astype(t),
              "v": None if merged else heads(12, 8, values).astype(t),
              "b": heads(13, 16 + values).astype(t) if projection else None, "offset": offset,
              "sums": sums, "bias": None if extra is None else extra.astype(t)},
             dynamic=dynamic, oracle=oracle, num_heads=2, **attributes)

    case("", dynamic=("q", "k", "v", "offset", "sums"))
    case("_half", np.float16, merged=True, projection=True)
    case("_merged", merged=True, dynamic=("offset",))
    case("_values", values=12, projection=True, scale=0.7, mask_filter_value=-3e4)
    case("_bias", merged=True, projection=True, extra=heads(14, 1, 2, length, length))


# --- positions

def t5_bucket(distance, buckets, both, reach):
    """The bucket of key position - query position in Hugging Face's T5, in f32."""
    bucket = 0
    if both:
        buckets //= 2
        bucket += buckets if distance > 0 else 0
        distance = abs(distance)
    else:
        distance = -min(distance, 0)
    exact = buckets // 2
    if distance < exact:
        return bucket + distance
    share = np.log(np.float32(distance) / np.float32(exact)) / np.float32(math.log(reach / exact))
    return bucket + min(exact + int(share * np.float32(buckets - exact)), buckets - 1)


def relative_position_bias():
    def case(name, buckets, count, length, t=np.float32, fixed=True, both=0, reach=128, keys=None):
        def oracle(table, queries, keys):
            rows = table.reshape(count, buckets)  # the buckets of a head are adjacent
            at = [[t5_bucket(k - q, buckets, both, reach) for k in range(keys[0])]
                  for q in range(queries[0])]
            return rows[:, at][None]

        Case(f"RelativePositionBias{name}", "RelativePositionBias",
             {"table": heads(20, buckets, count).astype(t), "queries": np.array([length]),
              "keys": np.array([keys or length])},
             constants=("table", "queries", "keys") if fixed else ("table",), oracle=oracle,
             max_distance=reach, **({"is_bidirectional": 1} if both else {}))

    case("", 32, 1, 40, reach=24)
    case("_both", 32, 2, 24, both=1, reach=20)
    case("_half", 9, 3, 7, np.float16, both=1)
    case("_runtime", 8, 3, 11, fixed=False, reach=9)
    case("_step", 8, 3, 5, fixed=False, both=1, keys=9)


def gated_relative_position_bias():
    def case(name, batch, length, t=np.float32, counts=None, dynamic=(), columns=8):
        def oracle(q, b, positions, w, wb, a, offset=None):
            q = q if offset is None else restore_padding(q, offset)
            x = split(q.astype(np.float64) + b, 2) @ w.astype(np.float64) + wb
            logits = x.reshape(*x.shape[:3], 2, -1).sum(-1)
            update, reset = np.split(1 / (1 + np.exp(-logits)), 2, -1)
            return ((update * (reset * a - 1) + 2) * positions).astype(t)

        q = heads(21, batch, length, 6) if counts is None else heads(21, sum(counts), 6)
        Case(f"GatedRelativePositionBias{name}", "GatedRelativePositionBias",
             {"q": q.astype(t), "b": heads(22, 6).astype(t),
              "positions": heads(23, 1, 2, length, length).astype(t),
              "w": heads(24, 3, columns).astype(t), "wb": heads(25, columns).astype(t),
              "a": heads(26, 1, 2, 1, 1).astype(t),
              "offset": None if counts is None else offsets(counts, length)},
             dynamic=dynamic, oracle=oracle, num_heads=2)

    case("", 2, 5)
    case("_dynamic", 3, 4, dynamic=("q", "positions"), columns=2)
    case("_half", 2, 3, np.float16)
    case("_packed", 3, 5, counts=[2, 5, 1], dynamic=("q", "offset"))


def rotations():
    angles = np.outer(np.arange(11), 0.6 ** np.arange(6)).astype(np.float32)
    position = whole(30, 0, 11, 3, 2, 5, dtype=np.int64)

    def case(name, x, t=np.float32, columns=6, dynamic=(), **attributes):
        Case(f"MRotaryEmbedding{name}", "MRotaryEmbedding",
             {"x": x.astype(t), "p": position, "cos": np.cos(angles[:, :columns]).astype(t),
              "sin": np.sin(angles[:, :columns]).astype(t)}, dynamic=dynamic, **attributes)

    merged, apart = heads(31, 2, 5, 24), heads(32, 2, 2, 5, 12)
    case("", merged, num_heads=2, mrope_section=[1, 2, 3], dynamic=("p",))
    case("_4d", apart, mrope_section=[3, 1, 2], dynamic=("x", "p"))
    case("_interleaved", merged, num_heads=2, mrope_section=[2, 2, 2], interleaved=1)
    case("_layout", apart, mrope_section=[3, 2, 1], mrope_layout=1)
    case("_layout_uneven", apart, mrope_section=[4, 1, 1], mrope_layout=1, interleaved=1)
    case("_partial", merged, num_heads=2, rotary_embedding_dim=8, columns=4,
         mrope_section=[2, 0, 2])
    case("_scale", apart, mrope_section=[2, 2, 2], scale=0.75, is_packed_batching=1)
    case("_half", apart, np.float16, mrope_section=[2, 3, 1], scale=1.5)

    def gemma(emb, q, q_rot, k, k_rot):
        cos, sin = (f(emb.astype(np.float64))[:, None] for f in (np.cos, np.sin))
        return tuple((a * cos + b * sin).astype(np.float16) for a, b in ((q, q_rot), (k, k_rot)))

    states = {k: heads(33 + i, 2, 3, 5, 4).astype(np.float16)
              for i, k in enumerate(("q", "q_rot", "k", "k_rot"))}
    Case("GemmaRotaryEmbedding", "GemmaRotaryEmbedding", {"emb": heads(40, 2, 5, 4) * 9, **states},
         outputs=2, oracle=gemma)
    Case("GemmaRotaryEmbedding_dynamic", "GemmaRotaryEmbedding",
         {"emb": heads(41, 2, 5, 4), **states}, outputs=2, dynamic=("emb", "q", "q_rot"),
         oracle=gemma)


def rms_norm_rotary():
    angles = np.outer(np.arange(9), 0.6 ** np.arange(2)).astype(np.float32)

    def case(name, position, start=0, width=0, flatten=0, dynamic=(), outputs=1):
        size = width or 6

        def oracle(x, scale, p, cos, sin):
            x = x[..., start:start + size].astype(np.float64)
            x = x / np.sqrt((x * x).mean(-1, keepdims=True) + 0.1) * scale
            at = p if p.size > 1 else p.ravel()[0] + np.arange(3)[None]
            c, s = cos[at][:, :, None], sin[at][:, :, None]
            a, b = x[..., :2], x[..., 2:4]
            y = np.concatenate([a * c - b * s, b * c + a * s, x[..., 4:]], -1).astype(np.float16)
            return (y.reshape(*((1, 6) if flatten else (2, 3)), -1), x.astype(np.float32))[:outputs]

        Case(f"RMSNormRotary{name}", "RMSNormRotary",
             {"x": heads(42, 2, 3, 2, 6).astype(np.float16), "scale": heads(43, size),
              "p": np.array(position), "cos": np.cos(angles), "sin": np.sin(angles)},
             outputs=outputs, oracle=oracle, dynamic=dynamic, output_fp16=1, epsilon=0.1,
             rotary_embedding_dim=4, input_start=start, input_width=width, flatten_batch=flatten)

    case("", [2], outputs=2, dynamic=("x",))
    case("_positions", [[1, 4, 2], [0, 8, 3]], start=1, width=4, dynamic=("p",))
    case("_flat", [[1, 4, 2], [0, 8, 3]], width=5, flatten=1)


# --- LongformerAttention

def longformer():
    def case(name, batch, length, window, t=np.float32, dynamic=()):
        def oracle(x, w, b, mask, gw, gb, marked):
            def project(weight, bias):
                y = x.astype(np.float64) @ weight.astype(np.float64) + bias
                return (split(part, 2) for part in np.split(y, 3, -1))

            q, k, v = project(w, b)
            gq, gk, gv = project(gw, gb)
            y = np.zeros((batch, 2, length, 4))
            for n in range(batch):
                for s in range(length):
                    if mask[n, s] < 0:
                        continue
                    keys = [i for i in range(length)
                            if marked[n, s] or marked[n, i] or abs(i - s) <= window]
                    a, kk, vv = (gq, gk, gv) if marked[n, s] else (q, k, v)
                    scores = np.einsum("hd,hkd->hk", a[n, :, s], kk[n][:, keys]) / 2 + mask[n, keys]
                    y[n, :, s] = np.einsum("hk,hkd->hd", softmax_of(scores), vv[n][:, keys])
            return merge(y).astype(t)

        mask = np.zeros((batch, length), t)
        mask[0, -2:] = -10000
        marked = np.zeros((batch, length), np.int32)
        marked[0, :2] = 1
        marked[-1, 5] = 1
        Case(f"LongformerAttention{name}", "LongformerAttention",
             {"x": heads(100, batch, length, 8).astype(t), "w": heads(101, 8, 24).astype(t),
              "b": heads(102, 24).astype(t), "mask": mask, "gw": heads(103, 8, 24).astype(t),
              "gb": heads(104, 24).astype(t), "marked": marked},
             dynamic=dynamic, oracle=oracle, num_heads=2, window=window)

    case("", 2, 12, 2, dynamic=("x", "mask", "marked"))
    case("_half", 1, 8, 2, np.float16)
    case("_window", 2, 8, 4)


# --- inputs and attributes of operators that make_contrib.py has cases of

def rest():
    q, k, v = heads(120, 2, 3, 8), heads(121, 2, 5, 8), heads(122, 2, 5, 8)
    mask = i32([[1, 1, 1, 0, 1], [1, 0, 1, 1, 1]])
    with_typed_scores(Case("MultiHeadAttention_qk", "MultiHeadAttention",
                           {"q": q, "k": k, "v": v, "b": heads(123, 24), "mask": mask,
                            "bias": heads(124, 1, 2, 3, 5)}, outputs=[True, False, False, True],
                           num_heads=2, scale=0.6))
    x, gamma = heads(125, 1, 2, 8) * 1e-3, heads(126, 8)
    Case("SkipSimplifiedLayerNormalization_small", "SkipSimplifiedLayerNormalization",
         {"x": x, "skip": x, "gamma": gamma})
    Case("EmbedLayerNormalization_mask", "EmbedLayerNormalization",
         {"ids": whole(127, 0, 4, 2, 4, dtype=np.int32), "segments": None,
          "word": heads(128, 4, 8), "position": heads(129, 4, 8), "segment": None, "gamma": gamma,
          "beta": heads(130, 8), "mask": i32([[1, 1, 0, 1], [2, 1, 0, -1]])}, outputs=2)
    angles = np.outer(np.arange(6), 0.7 ** np.arange(4)).astype(np.float32)
    Case("RotaryEmbedding_packed_batching", "RotaryEmbedding",
         {"x": heads(131, 2, 8, 16), "p": whole(132, 0, 6, 2, 8, dtype=np.int64),
          "cos": np.cos(angles), "sin": np.sin(angles)}, is_packed_batching=1)


def causal_conv():
    def case(name, shape, state, kernel=3, dynamic=(), **attributes):
        Case(f"CausalConvWithState{name}", "CausalConvWithState",
             {"x": heads(140, *shape), "w": heads(141, 4, 1, kernel), "b": heads(142, 4),
              "past": None if state is None else heads(143, *state)}, outputs=2, constants=("w",),
             dynamic=dynamic, **attributes)

    case("", (2, 4, 5), (2, 4, 2), activation="silu")
    case("_dilated", (2, 4, 5), (2, 4, 6), dilation=3, kernel=3)
    case("_dilated_first", (1, 4, 3), None, dilation=2, activation="swish")
    case("_last", (2, 5, 4), (2, 2, 4), channels_last=1, dynamic=("x", "past"))
    case("_last_axes", (2, 3, 2, 2), (2, 2, 2, 2), channels_last=1, dilation=2, kernel=2)


def more_attention():
    packed_batches()
    relative_position_bias()
    gated_relative_position_bias()
    rotations()
    rms_norm_rotary()
    longformer()
    rest()
    causal_conv()
    caches()
