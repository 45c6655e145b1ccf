# SPDX-License-Identifier: Apache-2.0
"""Cases of make_contrib.py: attention on caches of keys and values."""
import math

import numpy as np
import onnxruntime as ort
from onnx import TensorProto

from contrib_case import Case, heads


def i32(x):
    return np.array(x, np.int32)


def softmax_of(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def split(x, count):
    """[B,S,H*D] -> f64 [B,H,S,D]."""
    b, s, d = x.shape
    return x.astype(np.float64).reshape(b, s, count, d // count).transpose(0, 2, 1, 3)


def merge(x):
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


def attend(q, k, v, scale=None, bias=0.0):
    """Heads [B,H,S,D] of q on k and v, with a bias of the scores."""
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    return softmax_of(q @ k.transpose(0, 1, 3, 2) * scale + bias) @ v


# --- steps of decoders

def decode_step(q, k, v, past, mask, bias, scale, filter_value):
    """The result and the scores of one step [B,H,1,D] behind the past [B,H,P,D] of both."""
    total = [np.concatenate([p, n], 2) for p, n in zip(past, (k, v))]
    scores = q @ total[0].transpose(0, 1, 3, 2) * (scale or 1 / math.sqrt(q.shape[-1]))
    if mask is not None:
        scores = scores + np.where(mask == 0, filter_value, 0)[:, None, None]
    scores = scores + (0 if bias is None else bias)
    return merge(softmax_of(scores) @ total[1]), scores


def masked_multi_head():
    mask = i32([[1, 1, 0, 1], [0, 1, 1, 1]])
    step = {"q": heads(50, 2, 1, 8), "k": heads(51, 2, 1, 8), "v": heads(52, 2, 1, 8)}
    past = {"pk": heads(53, 2, 2, 6, 4), "pv": heads(54, 2, 2, 6, 4)}
    length = {"length": i32([3])}

    def case(name, inputs, bias=None, mask=None, projection=None, **attributes):
        feeds = {"q": None, "k": None, "v": None, "mask": mask, "bias": bias, "pk": None,
                 "pv": None, "length": None, "beams": None, "origins": None, "b": projection}
        feeds.update(inputs)
        return Case(f"DecoderMaskedMultiHeadAttention{name}", "DecoderMaskedMultiHeadAttention", feeds,
             num_heads=2, **attributes)

    buffer = dict(past_present_share_buffer=1)
    case("", {**step, **past, **length}, outputs=3, dynamic=("pk", "pv"), **buffer)
    case("_first", {**step, **past, "length": i32([0])}, outputs=3, **buffer)
    case("_mask", {**step, **past, **length}, mask=mask, bias=heads(55, 1, 2, 1, 4),
         projection=heads(56, 24), outputs=3, dynamic=("mask", "bias"), scale=0.3, **buffer)
    with_typed_scores(case("_bias", {**step, **past, **length}, bias=heads(55, 2, 1, 1, 4), outputs=4,
                           output_qk=1, mask=mask, mask_filter_value=-2.0, **buffer))
    other = {"q": step["q"], "k": heads(57, 2, 2, 5, 4), "v": heads(58, 2, 2, 5, 4)}
    case("_cross", other, dynamic=("k", "v"), mask=i32([[1, 1, 1, 0, 1], [1, 0, 1, 1, 1]]))
    with_typed_scores(case("_cross_qk", other, scale=0.8, output_qk=1,
                           outputs=[True, False, False, True]))
    more_masked_multi_head(case, step, past, length, mask)


def with_typed_scores(case):
    """ONNX Runtime's results; it infers no type of the scores, so that the model declares it."""
    model = case.model()
    for result in model.graph.output:
        result.type.tensor_type.elem_type = TensorProto.FLOAT
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    results = tuple(session.run(None, case.feeds()))
    case.oracle = lambda **_: results


def more_masked_multi_head(case, step, past, length, mask):
    """Inputs that ONNX Runtime's kernel for CPUs does not take, or not as they are defined."""
    def oracle(q, pk, pv, k=None, v=None, mask=None, length=None, b=None, origins=None, beams=None):
        k, v = (q[..., 8:16], q[..., 16:]) if k is None else (k, v)
        q = q[..., :8]
        if b is not None:
            q, k, v = q + b[:8], k + b[8:16], v + b[16:]
        q, k, v = (split(x, 2) for x in (q, k, v))
        used = pk.shape[2] if length is None else length[0]
        seen = [x[:, :, :used].copy() for x in (pk, pv)]
        if origins is not None and (beams is None or beams[0] > 1):
            width = origins.shape[1]
            for x, old in zip(seen, (pk, pv)):
                for row in range(len(x)):
                    for t in range(used):
                        source = row // width * width + origins[row // width, row % width, t]
                        x[row, :, t] = old[source, :, t]
        y, _ = decode_step(q, k, v, seen, mask, None, None, -10000.0)
        if length is None:
            present = [np.concatenate([pk, k], 2), np.concatenate([pv, v], 2)]
        else:
            present = [pk.copy(), pv.copy()]
            for p, now in zip(present, (k, v)):
                p[:, :, used] = now[:, :, 0]
        return y.astype(pk.dtype), *(p.astype(pk.dtype) for p in present)

    case("_joined", {**step, "pk": past["pk"][:, :, :3], "pv": past["pv"][:, :, :3]}, mask=mask,
         outputs=3, dynamic=("pk", "pv", "mask"), oracle=oracle)
    case("_packed", {"q": np.concatenate(list(step.values()), -1), **past, **length},
         projection=heads(60, 24), outputs=3, oracle=oracle, past_present_share_buffer=1)
    half = {k: v.astype(np.float16) for k, v in {**step, **past}.items()}
    case("_half", {**half, **length}, mask=mask, outputs=3, oracle=oracle,
         past_present_share_buffer=1)
    beams = {"q": heads(61, 4, 1, 8), "k": heads(62, 4, 1, 8), "v": heads(63, 4, 1, 8),
             "pk": heads(64, 4, 2, 5, 4), "pv": heads(65, 4, 2, 5, 4), **length,
             "origins": i32([[[0, 1, 1, 9, 9], [1, 1, 0, 9, 9]], [[0, 0, 0, 9, 9], [1, 0, 1, 9, 9]]])}
    case("_beams", {**beams, "beams": i32([2])}, outputs=3, oracle=oracle,
         dynamic=("q", "k", "v", "pk", "pv", "origins"), past_present_share_buffer=1)
    case("_one_beam", {**beams, "beams": i32([1])}, outputs=3, oracle=oracle,
         past_present_share_buffer=1)


def masked_self():
    def oracle(x, w, b, past, length, mask=None, bias=None, origins=None, beams=None):
        q, k, v = (split(y, 2) for y in np.split(x.astype(np.float64) @ w + b, 3, -1))
        used = min(int(length), past.shape[3])
        y, _ = decode_step(q, k, v, [p[:, :, :used] for p in past], mask, bias, 0.6, -10000.0)
        present = np.concatenate([past[:, :, :, :used], np.stack([k, v]), past[:, :, :, used + 1:]], 3)
        return y.astype(x.dtype), present.astype(x.dtype)

    base = {"x": heads(70, 2, 1, 6), "w": heads(71, 6, 24), "b": heads(72, 24)}
    mask = {"mask": i32([[1, 0, 1, 1], [1, 1, 1, 1]])}
    Case("DecoderMaskedSelfAttention", "DecoderMaskedSelfAttention",
         {**base, **mask, "past": heads(73, 2, 2, 2, 5, 4), "bias": None, "length": i32(3)},
         outputs=2, num_heads=2, scale=0.6, past_present_share_buffer=1, dynamic=("past", "mask"),
         oracle=oracle)
    Case("DecoderMaskedSelfAttention_joined", "DecoderMaskedSelfAttention",
         {**base, "mask": None, "past": heads(74, 2, 2, 2, 3, 4), "bias": heads(75, 2, 2, 1, 4),
          "length": i32(3)}, outputs=2, num_heads=2, scale=0.6, dynamic=("past",), oracle=oracle)


def fairseq_decoder():
    """DecoderAttention, whose sequences come first."""
    def case(name, other, past, hidden=None, t=np.float32, dynamic=()):
        def oracle(q, k, wq, wkv, b, other, use_past, state, has_hidden, hidden=None, pk=None, pv=None):
            first = [x.astype(np.float64).transpose(1, 0, 2) for x in (q, k)]
            queries = split(first[0] @ wq + b[:8], 2)
            now = [split(first[int(other)] @ w + c, 2)
                   for w, c in zip(np.split(wkv.astype(np.float64), 2, 1), (b[8:16], b[16:]))]
            if use_past and state:
                now = [pk, pv] if other else [np.concatenate([p, n], 2)
                                              for p, n in zip((pk, pv), now)]
            bias = np.where(hidden, -np.inf, 0)[:, None, None] if has_hidden else 0
            y = merge(attend(queries, *now, bias=bias)).transpose(1, 0, 2)
            return y.astype(t), *(x.astype(t) for x in now)

        flags = {"other": other, "use_past": past, "state": past, "has_hidden": hidden is not None}
        caches = {k: heads(s, 2, 2, 3, 4).astype(t) if past else None
                  for k, s in (("pk", 85), ("pv", 86))}
        Case(f"DecoderAttention{name}", "DecoderAttention",
             {"q": heads(80, 2, 2, 8).astype(t), "k": heads(81, 4, 2, 8).astype(t),
              "wq": heads(82, 8, 8).astype(t), "wkv": heads(83, 8, 16).astype(t),
              "b": heads(84, 24).astype(t), "hidden": hidden, **caches,
              **{k: np.array(v) for k, v in flags.items()}},
             outputs=3, constants=tuple(flags), dynamic=dynamic, oracle=oracle, num_heads=2)

    case("_self", False, False, np.array([[False, False], [True, False]]))
    case("_self_past", False, True, np.arange(10).reshape(2, 5) % 4 == 1,
         dynamic=("q", "k", "pk", "pv", "hidden"))
    case("_cross", True, False, np.array([[False, True, False, False]] * 2), dynamic=("k",))
    case("_cross_past", True, True)
    case("_half", False, True, t=np.float16)


# --- SparseAttention

def sparse():
    """Block-sparse attention whose past and present are one buffer, as its kernel demands."""
    # Layouts of 3 blocks of 16 keys: of the second row of layout 1 the first block is hidden, of
    # the third row the second one.
    rows, columns = i32([[0, 1, 3, 6], [0, 1, 2, 4]]), i32([[0, 0, 1, 0, 1, 2], [0, 1, 0, 2, -1, -1]])
    angles = np.outer(np.arange(48), 0.7 ** np.arange(8)).astype(np.float32)

    def oracle(q, k, v, pk, pv, lengths, **_):
        """The definition for one step. ONNX Runtime's kernel mixes up sequences of several lengths."""
        q, k, v = split(q, 4), split(k, 1), split(v, 1)
        present, y = [pk.copy(), pv.copy()], np.zeros(q.shape)
        for b, n in enumerate(lengths):
            for p, now in zip(present, (k, v)):
                p[b, :, n - 1] = now[b, :, 0]
            for h in range(4):
                r, layout = (n - 1) // 16, h % 2
                seen = columns[layout][rows[layout][r]:rows[layout][r + 1]]
                keys = [t for t in range(n) if t // 16 in seen]
                y[b, h] = attend(q[b:b + 1, h:h + 1], *(p[b:b + 1, :, keys] for p in present))[0, 0]
        return merge(y).astype(np.float32), *present

    def case(name, batch, steps, total, lengths, size=8, layouts=2, packed=False, groups=2,
             t=np.float32, dynamic=(), **attributes):
        q, k, v = (heads(90 + i, batch, steps, h * size).astype(t) for i, h in enumerate((4, groups, groups)))
        feeds = {"q": np.concatenate([q, k, v], -1) if packed else q, "k": None if packed else k,
                 "v": None if packed else v}
        for i, key in enumerate(("pk", "pv")):
            feeds[key] = heads(93 + i, batch, groups, 48, size).astype(t)
            for b, n in enumerate(lengths):  # what lies behind the past is nobody's
                feeds[key][b, :, max(n - steps, 0):] = 0
        feeds.update({"rows": rows[2 - layouts:], "columns": columns[2 - layouts:],
                      "total": i32([total]), "lengths": i32(lengths)})
        if attributes.get("do_rotary"):
            feeds.update({"cos": np.cos(angles).astype(t), "sin": np.sin(angles).astype(t)})
        made = Case(f"SparseAttention{name}", "SparseAttention", feeds, outputs=3,
                    constants=("rows", "columns"), num_heads=4, kv_num_heads=groups,
                    sparse_block_size=16, dynamic=dynamic, **attributes)
        if len(set(lengths)) == 1:
            results = in_one_buffer(made)
            made.oracle = lambda **_: results
        else:
            made.oracle = oracle

    case("", 1, 40, 40, [40])
    case("_decode", 1, 1, 36, [36], dynamic=("q", "k", "v", "pk", "pv"))
    case("_decode_rotary", 2, 1, 35, [35, 35], size=16, groups=1, do_rotary=1, scale=0.4)
    case("_ragged", 2, 1, 36, [36, 20], groups=1, dynamic=("q", "lengths"))
    case("_chunk", 1, 5, 34, [34], size=16, packed=True, do_rotary=1, rotary_interleaved=1, groups=1)
    case("_one_layout", 1, 18, 18, [18], layouts=1, packed=True)
    case("_half", 1, 1, 40, [40], t=np.float16)


def in_one_buffer(case):
    """ONNX Runtime's results with pk and y1, and pv and y2, in one buffer each."""
    session = ort.InferenceSession(case.model().SerializeToString(), providers=["CPUExecutionProvider"])
    bound = session.io_binding()
    buffers = {}
    for key, value in case.feeds().items():
        buffers[key] = ort.OrtValue.ortvalue_from_numpy(value.copy())
        bound.bind_ortvalue_input(key, buffers[key])
    bound.bind_output("y0")
    bound.bind_ortvalue_output("y1", buffers["pk"])
    bound.bind_ortvalue_output("y2", buffers["pv"])
    session.run_with_iobinding(bound)
    return tuple(x.numpy().copy() for x in bound.get_outputs())


# --- GroupQueryAttention, beside the cases of make_contrib.py

def group_query():
    """Queries of 4 heads on keys of 2, 16 numbers each; rows of the cache behind the past are 0."""
    angles = np.outer(np.arange(16), 0.7 ** np.arange(8)).astype(np.float32)

    def case(name, batch, steps, past, last, keys=None, used=None, oracle=None,
             rotary=0, dynamic=(), **more):
        keys = steps if keys is None else keys
        feeds = {"q": heads(110, batch, steps, 64), "k": heads(111, batch, keys, 32),
                 "v": heads(112, batch, keys, 32)}
        for i, key in enumerate(("pk", "pv")):
            feeds[key] = None if past is None else heads(113 + i, batch, 2, past, 16)
            for b, n in enumerate(used or []):
                feeds[key][b, :, n:] = 0
        feeds.update({"last": i32(last), "total": i32(max(last) + 1),
                      "cos": np.cos(angles) if rotary else None,
                      "sin": np.sin(angles) if rotary else None})
        optional = ("places", "bias", "sink", "ks", "vs", "qn", "kn")
        feeds.update({k: more.pop(k, None) for k in optional})
        Case(f"GroupQueryAttention_{name}", "GroupQueryAttention", feeds, outputs=3, num_heads=4,
             kv_num_heads=2, do_rotary=rotary, dynamic=dynamic, oracle=oracle, **more)

    def oracle_with_norms(q, k, v, last, total, qn, kn):
        q, k, v = split(q, 4), split(k, 2), split(v, 2)
        q = q / np.sqrt((q * q).mean(-1, keepdims=True) + 0.5) * qn
        k = k / np.sqrt((k * k).mean(-1, keepdims=True) + 0.25) * kn
        hidden = np.where(np.tri(q.shape[2]) == 0, -np.inf, 0)
        y = attend(q, np.repeat(k, 2, 1), np.repeat(v, 2, 1), bias=hidden)
        return merge(y).astype(np.float32), k.astype(np.float32), v.astype(np.float32)

    norms = {"qn": heads(115, 16) + 1, "kn": heads(116, 16) + 1}
    case("norms", 1, 4, None, [3], oracle=oracle_with_norms, q_norm_epsilon=0.5,
         k_norm_epsilon=0.25, qk_norm_epsilon=9.0, **norms)
    case("norms_shared_epsilon", 1, 4, None, [3], oracle=oracle_with_norms, q_norm_epsilon=0.5,
         qk_norm_epsilon=0.25, dynamic=("q", "k", "v"), **norms)
    case("bias_buffer", 2, 1, 8, [3, 2], used=[3, 2], bias=heads(117, 2, 1, 1, 4),
         dynamic=("pk", "pv"))
    case("places_prompt", 2, 5, 8, [4, 4], used=[0, 0], rotary=1,
         places=np.array([[3, 7, 1, 2, 9], [0, 1, 2, 3, 4]]))
    case("places_decode", 2, 1, 5, [4, 2], used=[4, 2], rotary=1, places=np.array([[9], [3]]))
    case("no_new_keys", 1, 2, 6, [5], keys=0, used=[6], rotary=1)
    case("window_one", 1, 4, None, [3], local_window_size=1)


def windows():
    """Caches of a window of 4: `capacity` rows, of which a sequence that ends at `last` used some before."""
    angles = np.outer(np.arange(16), 0.7 ** np.arange(8)).astype(np.float32)

    def case(name, steps, capacity, last, results=3, rotary=0, sink=None, **attributes):
        batch = len(last)
        q, k, v = (heads(140 + i, batch, steps, h * 16) for i, h in enumerate((4, 2, 2)))
        caches = {"pk": heads(143, batch, 2, capacity, 16), "pv": heads(144, batch, 2, capacity, 16)}
        for b, end in enumerate(last):  # rows behind the past are nobody's
            past, step = max(end + 1 - steps, 0), capacity - 3
            for cache in caches.values():
                cache[b, :, past - step * (max(past - 4, 0) // step):] = np.nan
        feeds = {"q": q, "k": k, "v": v, **caches,
                 "lengths": i32(last), "total": i32(max(last) + 1), "cos": np.cos(angles) if rotary else None,
                 "sin": np.sin(angles) if rotary else None, "places": None, "bias": None, "sink": sink}
        Case(f"GroupQueryAttention_cache_of_window_{name}", "GroupQueryAttention", feeds,
             outputs=[True, results > 1, results > 1], num_heads=4, kv_num_heads=2, do_rotary=rotary, local_window_size=4,
             sliding_window_cache=1, **attributes)

    # Rows that hold no key may be anything: all results are compared where the cache is full behind the call.
    def causal(q, k, v, **_):
        hidden = np.where(np.tri(q.shape[1]) == 0, -np.inf, 0)
        y = attend(split(q, 4), np.repeat(split(k, 2), 2, 1), np.repeat(split(v, 2), 2, 1), bias=hidden)
        return merge(y).astype(np.float32)
    case("prompt", 3, 4, [2], results=1, oracle=causal)
    case("long_prompt", 9, 4, [8], rotary=1)
    case("decode", 1, 4, [9], rotary=1, dynamic=("q", "k", "v"))
    case("room", 1, 6, [8], rotary=1, dynamic=("pk", "pv"))
    case("chunk", 3, 6, [8], rotary=1)
    case("ragged", 1, 6, [8, 5], rotary=1)
    case("sink", 1, 4, [7], sink=heads(145, 4), softcap=5.0)


def caches():
    windows()
    masked_multi_head()
    masked_self()
    fairseq_decoder()
    sparse()
    group_query()
