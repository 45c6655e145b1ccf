# SPDX-License-Identifier: Apache-2.0
"""Softmax, norms, gelu, topk, roll, fence, rope, attention, squeeze_excite and recurrence."""
import numpy as np

from . import formulas
from .case import Given, by_onnx, case

INF, NAN = float("inf"), float("nan")


def softmax(x, axis, log=False, compare=True, **options):
    def onnx(x):
        return by_onnx("LogSoftmax" if log else "Softmax", [x], axis=axis)
    case("softmax", {"axis": axis, "log": log}, [x], lambda x: formulas.softmax(x, axis, log),
         onnx=onnx if compare else None, **options)


def softmaxes():
    for log in (False, True):
        softmax(Given("f32", [2, 5]), 1, log)
        softmax(Given("f32", ["N", 3, "M"]), 0, log, symbols={"N": 3, "M": 2})
        softmax(Given("f32", [2, 3, 2]), -2, log)
        softmax(Given("f32", [5], [10000, -10000, 9999, 9998.5, 0]), -1, log, compare=not log)  # ONNX: log(0)
        softmax(Given("f32", [3, 3], [1, -INF, 2, -INF, -INF, -INF, 1, NAN, 2]), 1, log)
        softmax(Given("f32", [2, 1]), 1, log)
        softmax(Given("f16", [3, 4], span=(-9, 9)), 1, log)
        softmax(Given("bf16", [3, 4], span=(-9, 9)), 0, log)
        softmax(Given("f64", [2, 3]), 1, log, tol=1e-9)
    softmax(Given("f16", [1, 3], [65504, 65504, -65504]), -1)


def layer_norm(given, compare=True, exact=False, tol=None, symbols=None, **attributes):
    a = {"axis": -1, "epsilon": 1e-5, "rms": False, **attributes}

    def formula(x, scale, *bias):
        return formulas.layer_norm(x, scale, *bias, **a)

    def onnx(x, scale, *bias):
        op = "RMSNormalization" if a["rms"] else "LayerNormalization"
        return by_onnx(op, [x, scale, *bias], axis=a["axis"], epsilon=a["epsilon"])
    case("layer_norm", a, given, formula, onnx=onnx if compare and not (a["rms"] and len(given) > 2) else None,
         exact=exact, tol=tol, symbols=symbols)


def layer_norms():
    for rms in (False, True):
        bias = [Given("f32", [5])]
        layer_norm([Given("f32", [2, 5]), Given("f32", [5])], rms=rms)
        layer_norm([Given("f32", ["N", 3, 5]), Given("f32", [5]), *bias], rms=rms, symbols={"N": 2})
        layer_norm([Given("f32", [2, 3, "M"]), Given("f32", [3, "M"]), Given("f32", [3, "M"])], rms=rms, axis=1,
                   symbols={"M": 2})
        layer_norm([Given("f32", [2, 3, 2]), Given("f32", [2, 3, 2])], rms=rms, axis=-3, epsilon=0.25)
        layer_norm([Given("f32", [2, 3, 5]), Given("f32", [1]), Given("f32", [3, 1])], rms=rms, axis=1,
                   epsilon=0, compare=False)
        layer_norm([Given("f32", [2, 3], [2, 2, 2, 0, 0, 0]), Given("f32", [3], [1, 2, 3])], rms=rms)
        layer_norm([Given("f32", [2, 4], span=(1000, 1003)), Given("f32", [4])], rms=rms, tol=1e-4 if not rms else None)
        layer_norm([Given("f16", [1, 4], [60000, -60000, 30000, 8192]), Given("f16", [4], [1, 2, -1, 0.5])], rms=rms)
        layer_norm([Given("bf16", [2, 6]), Given("bf16", [6]), Given("bf16", [6])], rms=rms, epsilon=0.5)
        layer_norm([Given("f16", [2, 4], [6e-8, -6e-8, 1.2e-7, 0, 1, 2, 3, 4]), Given("f32", [4])], rms=rms)
        layer_norm([Given("f64", [2, 3]), Given("f64", [3]), Given("f64", [3])], rms=rms, tol=1e-9)


def row_moments(x, chunk, **options):
    case("row_moments", {"chunk": chunk}, [x], lambda x: formulas.row_moments(x, chunk), **options)


def all_row_moments():
    row_moments(Given("f32", [2, 6]), 3)
    row_moments(Given("f32", ["N", 2, 4]), 4, symbols={"N": 2})
    row_moments(Given("f32", [1, 4], span=(1000, 1003)), 2)
    row_moments(Given("f16", [2, 4]), 2)
    row_moments(Given("bf16", [1, 2, 4]), 1)
    row_moments(Given("f64", [3, 6]), 2, tol=1e-12)


def moment_norm(x, chunk, epsilon=1e-5, **options):
    shape = [*x.dims[:-1], x.dims[-1] // chunk, 2]
    moments = Given("f64" if x.dtype == "f64" else "f32", shape, span=(1, 3))
    case("moment_norm", {"epsilon": epsilon}, [x, moments],
         lambda x, m: formulas.moment_norm(x, m, epsilon), **options)


def moment_norms():
    moment_norm(Given("f32", [2, 6]), 3)
    moment_norm(Given("f32", ["N", 2, 4]), 2, epsilon=0.25, symbols={"N": 2})
    moment_norm(Given("f32", [1, 4], span=(1000, 1003)), 4)
    moment_norm(Given("f16", [2, 4]), 1)
    moment_norm(Given("bf16", [1, 2, 4]), 2)
    moment_norm(Given("f64", [3, 6]), 2, tol=1e-9)
    rows = Given("f16", [2, 4])
    case("moment_norm", {"epsilon": 1e-3}, [rows, Given("f32", [2, 2, 2], span=(1, 3)), rows],
         lambda x, m, result: formulas.moment_norm(x, m, 1e-3))


def group_norm(x, groups, epsilon=1e-5, instance=False, **options):
    channels = x.dims[1]
    given = [x, Given(x.dtype, [channels]), Given(x.dtype, [channels])]

    def onnx(x, scale, bias):
        if instance:
            return by_onnx("InstanceNormalization", [x, scale, bias], epsilon=epsilon)
        few = [v.astype(np.float32) for v in (x, scale, bias)]
        return by_onnx("GroupNormalization", few, num_groups=groups, epsilon=epsilon)
    case("group_norm", {"groups": groups, "epsilon": epsilon}, given,
         lambda x, scale, bias: formulas.group_norm(x, scale, bias, groups, epsilon), onnx=onnx, **options)


def group_norms():
    group_norm(Given("f32", [2, 4, 3]), 2)
    group_norm(Given("f32", [1, 3, 2, 5]), 1, epsilon=0.25)
    group_norm(Given("f32", ["N", 6, "H", 2]), 3, symbols={"N": 2, "H": 3})
    group_norm(Given("f32", [2, 3, 5]), 3, instance=True)
    group_norm(Given("f32", ["N", 2, 2, 3]), 2, epsilon=1, instance=True, symbols={"N": 3})
    group_norm(Given("f32", [2, 4]), 2)
    group_norm(Given("f16", [1, 4, 3], span=(-900, 900)), 2)
    group_norm(Given("bf16", [2, 4, 2]), 4, instance=True)
    group_norm(Given("f64", [1, 4, 3]), 2, epsilon=0, tol=1e-9)


def gelus():
    for tanh in (False, True):
        def formula(x, tanh=tanh):
            return formulas.gelu(x, tanh)

        def onnx(x, tanh=tanh):
            return by_onnx("Gelu", [x.astype(np.float32)], approximate="tanh" if tanh else "none")
        spread = [-3, -2.5, -1, -0.75, -0.25, -0.0, 0.0, 0.125, 0.5, 1, 2.25, 3]
        case("gelu", {"tanh": tanh}, [Given("f32", [3, 4], spread)], formula, onnx=onnx)
        case("gelu", {"tanh": tanh}, [Given("f32", ["N", 3])], formula, onnx=onnx, symbols={"N": 2})
        case("gelu", {"tanh": tanh}, [Given("f32", [4], [-40, 40, INF, NAN])], formula, onnx=onnx)
        case("gelu", {"tanh": tanh}, [Given("f16", [9], [-4, -1.5, -0.5, -0.0, 0.25, 0.75, 1.5, 3, 65504])], formula)
        case("gelu", {"tanh": tanh}, [Given("bf16", [8], [-4, -1.5, -0.5, 0.25, 0.75, 1.5, 3, 300])], formula)
        case("gelu", {"tanh": tanh}, [Given("f64", [4], [-1.5, -0.125, 0.625, 2])], formula, tol=1e-9)


def topk(x, k, axis, largest, **options):
    def onnx(x):
        return by_onnx("TopK", [x, np.array([k])], outputs=2, axis=axis, largest=int(largest))
    case("topk", {"k": k, "axis": axis, "largest": largest}, [x], lambda x: formulas.topk(x, k, axis, largest),
         out=[x.dtype, "i64"], exact=True, onnx=onnx, **options)


def topks():
    ties = [2, -1, 2, 3, -1, 3, 0, 2]
    for largest in (True, False):
        topk(Given("f32", [8], ties), 5, 0, largest)
        topk(Given("f32", [2, 5, 2]), 3, 1, largest)
        topk(Given("f32", ["N", 4]), 2, -2, largest, symbols={"N": 5})
        topk(Given("f32", [5], [INF, -INF, 1, INF, -INF]), 3, -1, largest)
        topk(Given("f32", [4], [0.0, -0.0, 0.0, -0.0]), 3, 0, largest)
        topk(Given("f16", [3, 4]), 1, 1, largest)
        topk(Given("bf16", [2, 6]), 6, -1, largest)
        topk(Given("i8", [9], span=(-3, 3)), 4, 0, largest)
        topk(Given("u8", [6], [255, 0, 128, 127, 255, 1]), 3, 0, largest)
        topk(Given("i64", [4], [-2**62, 2**62, 2**62 + 1, -2**62 - 1]), 3, 0, largest)


def roll(x, axes, shifts, symbolic=None, **options):
    case("roll", {"axes": axes, "shifts": symbolic or shifts}, [x], lambda x: formulas.roll(x, axes, shifts),
         exact=True, onnx=lambda x: [np.roll(x, shifts, axes)], **options)


def rolls():
    roll(Given("f32", [5], [-0.0, 1, NAN, -INF, 0.0]), [0], [2])
    roll(Given("f32", [2, 3, 4]), [1], [1])
    roll(Given("f32", [2, 3, 4]), [2, 0], [3, 1])
    roll(Given("f32", [3, 4]), [0, 1], [0, 4])
    roll(Given("f32", ["N", 3]), [0], [3], "?[N-1]", symbols={"N": 4})
    roll(Given("f16", [3, "M"]), [1, 0], [2, 1], "?[M-3,1]", symbols={"M": 5})
    for dtype in ("f64", "bf16", "f8e4m3", "f4e2m1", "i4", "u4", "i8", "u8", "i64", "bool"):
        roll(Given(dtype, [3, 3]), [0, 1], [1, 2])


def fences():
    for opens in (True, False):
        case("fence", {"opens": opens}, [Given("f32", [5], [-0.0, 1, NAN, -INF, 2.5])], lambda x: x, exact=True)
        case("fence", {"opens": opens}, [Given("i4", ["N", 3])], lambda x: x, symbols={"N": 1})


def rope(x, angles, interleaved, compare=False, **options):
    def onnx(x, cos, sin):
        return by_onnx("RotaryEmbedding", [x, cos, sin], interleaved=int(interleaved))
    case("rope", {"interleaved": interleaved}, [x, angles, angles],
         lambda x, cos, sin: formulas.rope(x, cos, sin, interleaved), exact=True,
         onnx=onnx if compare else None, **options)


def ropes():
    for interleaved in (False, True):
        rope(Given("f32", [2, 3, 2, 6]), Given("f32", [1, 2, 3]), interleaved)
        rope(Given("f32", [1, 2, 3, 4]), Given("f32", [1, 3, 2]), interleaved, compare=True)
        rope(Given("f32", ["S", 6]), Given("f32", ["S", 3]), interleaved, symbols={"S": 2})
        rope(Given("f32", [8]), Given("f32", [4]), interleaved)
        rope(Given("f32", [2, 2, 3, 2]), Given("f32", [2, 1, 3, 1]), interleaved)
        rope(Given("f16", [1, 2, 2, 4]), Given("f16", [1, 2, 2]), interleaved, compare=True)
        rope(Given("bf16", [3, 4]), Given("bf16", [3, 2]), interleaved)
        rope(Given("f16", [2, 4]), Given("f32", [2, 2]), interleaved)
        rope(Given("f64", [2, 4]), Given("f64", [2, 2]), interleaved)


def attention(q, k, v, mask=None, compare=True, tol=None, symbols=None, text=None, **attributes):
    a = {"scale": 0.5, "softcap": 0, "causal": False, "offset": 0, **attributes}
    given = [q, k, v] + ([mask] if mask else [])

    def onnx(q, k, v, *mask):
        return by_onnx("Attention", [q, k, v, *mask], scale=float(a["scale"]), softcap=float(a["softcap"]),
                       is_causal=int(a["causal"]))[:1]
    case("attention", {**a, **(text or {})}, given, lambda *x: formulas.attention(*x, **a),
         onnx=onnx if compare and a["offset"] == 0 else None, tol=tol, symbols=symbols)


def heads(dtype, batch, heads, groups, queries, keys, size, value_size=None):
    return [Given(dtype, [batch, heads, queries, size]), Given(dtype, [batch, groups, keys, size]),
            Given(dtype, [batch, groups, keys, value_size or size])]


def attentions():
    some = [1, 0, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0]
    bias = [0, -INF, 1, 0.5, -INF, -INF, -INF, -INF, -2, 0.25, -INF, 3]
    attention(*heads("f32", 2, 2, 2, 3, 4, 3, 5))
    attention(*heads("f32", 1, 4, 2, 2, 3, 2), scale=1)
    attention(*heads("f32", 1, 3, 1, 2, 5, 2), scale=0.25)
    attention(*heads("f32", "B", 4, 2, "S", "T", 2), causal=True, symbols={"B": 2, "S": 3, "T": 3})
    attention(*heads("f32", 1, 2, 1, 2, 4, 2), causal=True)
    attention(*heads("f32", 1, 1, 1, 2, 5, 2), causal=True, offset=3)
    attention(*heads("f32", 1, 2, 2, 3, 2, 2), causal=True, offset=-1)  # the first query sees nothing
    attention(*heads("f32", 1, 2, 1, "S", "T", 2), causal=True, offset=2, text={"offset": "?T-S"},
              symbols={"S": 3, "T": 5})
    attention(*heads("f32", 1, 2, 2, 2, 3, 4), softcap=1.5)
    attention(*heads("f32", 1, 2, 2, 3, 4, 2), Given("bool", [3, 4], some))
    attention(*heads("f32", 2, 2, 1, 3, 4, 2), Given("f32", [3, 4], bias), softcap=2)
    attention(*heads("f32", 2, 2, 2, 2, 3, 2), Given("bool", [2, 1, 1, 3], [1, 1, 0, 0, 1, 1]))
    attention(*heads("f32", 2, 3, 3, 2, 2, 2), Given("f32", [3, 1, 2]))
    attention(*heads("f32", 1, 2, 2, 3, 4, 2), Given("bool", [3, 4], some), causal=True)
    attention(*heads("f32", 1, 2, 2, 3, 4, 2), Given("f32", [3, 4], bias), causal=True, scale=1, softcap=3)
    attention(*heads("f32", 1, 1, 1, 2, 3, 2), scale=64)
    for dtype in ("f16", "bf16", "f64"):
        tol = 1e-9 if dtype == "f64" else None
        attention(*heads(dtype, 1, 2, 1, 2, 3, 4), compare=False, tol=tol)
        attention(*heads(dtype, 1, 2, 2, 3, 3, 2), Given(dtype, [3, 3]), causal=True, compare=False, tol=tol)


ACTS = {"relu": ("0=in(0):f32; 1=const(0):f32; 2=max(0,1):f32", lambda x: np.maximum(x, 0)),
        "sigmoid": ("0=in(0):f32; 1=sigmoid(0):f32", lambda x: 1 / (1 + np.exp(-x))),
        "silu": ("0=in(0):f32; 1=sigmoid(0):f32; 2=mul(0,1):f32", lambda x: x / (1 + np.exp(-x))),
        "tanh": ("0=in(0):f32; 1=tanh(0):f32", np.tanh),
        "double": ("0=in(0):f32; 1=const(2):f32; 2=mul(0,1):f32", lambda x: 2 * x),
        "hard sigmoid": ("0=in(0):f32; 1=const(0.25):f32; 2=mul(0,1):f32; 3=const(0.5):f32; 4=add(2,3):f32; "
                         "5=const(0):f32; 6=max(4,5):f32; 7=const(1):f32; 8=min(6,7):f32",
                         lambda x: np.clip(x / 4 + 0.5, 0, 1))}


def squeeze_excite(x, hidden, act, gate, **options):
    channels, t = x.dims[1], x.dtype
    given = [x, Given(t, [hidden, channels]), Given(t, [hidden]), Given(t, [channels, hidden]), Given(t, [channels])]
    case("squeeze_excite", {"act": ACTS[act][0], "gate": ACTS[gate][0]}, given,
         lambda *v: formulas.squeeze_excite(*v, ACTS[act][1], ACTS[gate][1]), **options)


def squeeze_excites():
    squeeze_excite(Given("f32", [2, 3, 2, 2]), 2, "relu", "hard sigmoid")
    squeeze_excite(Given("f32", [1, 4, 5]), 1, "relu", "sigmoid")
    squeeze_excite(Given("f32", ["N", 2, "H", 3]), 5, "silu", "sigmoid", symbols={"N": 2, "H": 2})
    squeeze_excite(Given("f32", [1, 3, 2, 1, 2]), 3, "tanh", "double")
    squeeze_excite(Given("f16", [1, 2, 4]), 3, "relu", "hard sigmoid", tol=4e-3)
    squeeze_excite(Given("f64", [2, 2, 3]), 2, "silu", "tanh", tol=1e-9)


def recurrence(cell, steps, batch, hidden, reversed_=(0,), dtype="f32", acts=None, lengths=None, compare=True,
               reset_after=False, input_forget=False, peepholes=False, **options):
    """acts: of the gates, the candidate and the result."""
    gates, d = {"rnn": 1, "gru": 3, "lstm": 4}[cell], len(reversed_)
    names = acts or {"rnn": ["tanh"], "gru": ["sigmoid", "tanh"], "lstm": ["sigmoid", "tanh", "tanh"]}[cell]
    a = {"cell": cell, "reversed": list(reversed_)}
    a.update(zip(("gate", "candidate", "output"), (ACTS[n][0] for n in names)))
    a.update({k: True for k, v in (("reset_after", reset_after), ("input_forget", input_forget),
                                   ("peepholes", peepholes), ("lengths", lengths)) if v})
    small = {"span": (-1, 1)}
    given = [Given(dtype, [steps, batch, d * gates * hidden], **small), Given(dtype, [d, gates * hidden, hidden], **small),
             Given(dtype, [d, batch, hidden], **small)]
    given += [Given(dtype, [d, batch, hidden], **small)] if cell == "lstm" else []
    given += [Given(dtype, [d, 1, hidden], **small)] if reset_after else []
    given += [Given(dtype, [d, 1, 3 * hidden], **small)] if peepholes else []
    given += [Given("i64", [batch], lengths)] if lengths else []

    def formula(*arrays):
        functions = dict(zip(("gate", "candidate", "output"), (ACTS[n][1] for n in names)))
        return formulas.recurrence(*arrays, cell=cell, reversed_=reversed_, reset_after=reset_after, lengths=bool(lengths),
                                   input_forget=input_forget, peepholes=peepholes, **functions)

    def onnx(x, r, h, *rest):
        # The inputs' product is the input itself, by weights that are the identity.
        w = np.eye(gates * hidden)[None]
        b = np.zeros((1, 2 * gates * hidden))
        rest = list(rest)
        c = rest.pop(0) if cell == "lstm" else None
        if reset_after:
            b[:, -hidden:] = rest.pop(0)[0]
        peep = rest.pop(0)[0] if peepholes else None
        inputs = [x, w, r, b, None, h, *([c, peep] if cell == "lstm" else [])]
        options = {"linear_before_reset": int(reset_after)} if cell == "gru" else {}
        y = by_onnx(cell.upper(), inputs, {"lstm": 3}.get(cell, 2), hidden_size=hidden, **options)
        return [*y[1:], y[0]]
    # ONNX's evaluator has one direction, its own functions and no lengths.
    own = compare and list(reversed_) == [0] and not (acts or lengths or input_forget)
    case("recurrence", a, given, formula, out=[dtype] * (3 if cell == "lstm" else 2), onnx=onnx if own else None,
         **options)


def recurrences():
    for cell in ("rnn", "gru", "lstm"):
        recurrence(cell, 3, 2, 2)
        recurrence(cell, 1, 1, 3, reversed_=(1,))
        recurrence(cell, 3, 3, 2, reversed_=(0, 1), lengths=[3, 1, 0])
        recurrence(cell, 2, 1, 2, dtype="f16", tol=4e-3)
        recurrence(cell, 2, 1, 2, dtype="f64", tol=1e-9)
    recurrence("gru", 3, 2, 2, reset_after=True)
    recurrence("gru", 2, 2, 3, reversed_=(0, 1), reset_after=True, acts=["hard sigmoid", "relu"])
    recurrence("lstm", 3, 2, 2, peepholes=True)
    recurrence("lstm", 2, 2, 2, reversed_=(1, 0), peepholes=True, lengths=[1, 2])
    recurrence("lstm", 2, 1, 2, input_forget=True, acts=["sigmoid", "relu", "silu"])


def add():
    for family in (softmaxes, layer_norms, all_row_moments, moment_norms, group_norms, gelus, topks, rolls, fences, ropes, attentions,
                   squeeze_excites, recurrences):
        family()
