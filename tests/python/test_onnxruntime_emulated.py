# SPDX-License-Identifier: Apache-2.0
"""The provider on emulated GPUs: CUDA graphs, kernels that compile while others run, a GPU that is
lost, a machine without NVRTC."""
import textwrap

from onnxruntime_emulated import run


def test_results_on_either_gpu_are_right(tmp_path):
    run(tmp_path, """
        assert [d.ep_options["device_id"] for d in devices] == ["0", "1"], devices
        for device in (0, 1):
            made = session(model(), device)
            for rows in (3, 5):
                np.testing.assert_allclose(made.run(None, feeds(rows))[0],
                                           on_cpu(model(), feeds(rows))[0], 1e-6)
            assert cuda.ingot_emulated_launches(device) > 0
    """)


def test_a_session_keeps_no_more_graphs_than_it_may(tmp_path):
    """The limit is one for all nodes, graph ids, shapes and addresses of a session; sessions have their
    own; what was used least recently is recorded anew."""
    run(tmp_path, """
        made = session(model(), enable_cuda_graph="1", ingot_max_graphs="3")
        options = {}
        for graph in (0, 1):
            options[graph] = onnxruntime.RunOptions()
            options[graph].add_run_config_entry("gpu_graph_id", str(graph))
        kept = [(graph, *bound(made, feeds(rows)["x"]), feeds(rows)["x"])
                for graph in (0, 1) for rows in (3, 5, 7)]
        def use(i, times):
            graph, binding, y, x = kept[i]
            before = cuda.ingot_emulated_replays(0)
            for _ in range(times):
                made.run_with_iobinding(binding, options[graph])
                check(y, x)
            return cuda.ingot_emulated_replays(0) - before
        counts = []
        for i in range(6):
            assert use(i, 3) == 2, i  # plain, recorded, replayed
            counts.append(cuda.ingot_emulated_graphs(0))
        assert counts == [1, 2, 3, 3, 3, 3], counts
        assert [use(i, 1) for i in (3, 4, 5)] == [1, 1, 1]  # the last three are kept
        assert use(0, 3) == 2 and cuda.ingot_emulated_graphs(0) == 3  # the first was not
        assert use(3, 1) == 0 and use(5, 1) == 1  # it took the place of the one used longest ago
        other = session(model(), enable_cuda_graph="1", ingot_max_graphs="1")
        binding, y = bound(other, feeds(3)["x"])
        for _ in range(3):
            other.run_with_iobinding(binding)
        check(y, feeds(3)["x"])
        assert cuda.ingot_emulated_graphs(0) == 1 + 3 - 1  # one place holds what ran once, without a graph
        del made, other, binding, kept
        gc.collect()
        assert cuda.ingot_emulated_graphs(0) == 0, cuda.ingot_emulated_graphs(0)
    """)


LOST = ("the GPU is unusable in this process since an earlier failure: {}: an illegal memory access was "
        "encountered ({}700); start a new process")


def test_a_lost_gpu_fails_each_call_with_its_first_cause(tmp_path):
    """Runs, copies, new sessions and streams, which do not reach the driver any more; sessions close, and
    the other GPU goes on."""
    run(tmp_path, f"""
        cause = {LOST.format("{what}", "{name}")!r}
        first, bound_one, other = session(model()), session(model(), enable_cuda_graph="1"), session(model(), 1)
        x = feeds(3)["x"]
        binding, y = bound(bound_one, x)
        for made in (first, other):
            made.run(None, feeds(3))
        for _ in range(3):
            bound_one.run_with_iobinding(binding)
        cuda.ingot_emulated_lose(0, 700)
        text = message(lambda: first.run(None, feeds(3)))
        assert "copy: an illegal memory access was encountered (700)" in text, text
        first_cause, refused = cause.format(what="copy", name=""), cuda.ingot_emulated_refused(0)
        for call in (lambda: first.run(None, feeds(3)), lambda: bound_one.run_with_iobinding(binding),
                     lambda: session(model()), lambda: session(model(), enable_cuda_graph="1"),
                     lambda: y.numpy()):
            for _ in range(3):
                text = message(call)
                assert first_cause in text, text
        text = message(lambda: value(x))
        assert "Allocation failed" in text or first_cause in text, text  # an allocator gives no reason
        assert cuda.ingot_emulated_refused(0) == refused, "each call returns at once"
        for made in (other, session(model(), 1)):
            np.testing.assert_allclose(made.run(None, feeds(3))[0], on_cpu(model(), feeds(3))[0], 1e-6)
        del first, bound_one, binding, y, call
        gc.collect()
        np.testing.assert_allclose(other.run(None, feeds(5))[0], on_cpu(model(), feeds(5))[0], 1e-6)
    """)


def test_a_gpu_that_is_lost_in_a_run_has_that_runs_cause(tmp_path):
    """Threads in the middle of runs get an error each, and nothing waits."""
    run(tmp_path, f"""
        made = session(model())
        bindings = [bound(made, feeds(3)["x"]) for _ in range(4)]
        texts, started = [], threading.Barrier(5)
        def go(binding):
            made.run_with_iobinding(binding)
            started.wait()
            while True:
                try:
                    made.run_with_iobinding(binding)
                except Exception as e:
                    texts.append(str(e))
                    return
        threads = [threading.Thread(target=go, args=(binding,)) for binding, _ in bindings]
        for t in threads:
            t.start()
        started.wait()
        cuda.ingot_emulated_lose(0, 700)
        for t in threads:
            t.join(60)
        assert len(texts) == 4 and not any(t.is_alive() for t in threads)
        assert all("an illegal memory access was encountered" in t for t in texts), texts
        causes = set()
        for call in (lambda: made.run_with_iobinding(bindings[0][0]), lambda: session(model()),
                     lambda: bindings[0][1].numpy()):
            text = message(call)
            causes.add(re.search("since an earlier failure: (.*); start a new process", text)[1])
        assert len(causes) == 1, causes
    """)


INCOMPATIBILITY = """
    from onnxruntime.capi import onnxruntime_pybind11_state as state
    if not hasattr(state, "get_hardware_device_ep_incompatibility_details"):
        print("NOT asked")
        raise SystemExit(0)
    details = state.get_hardware_device_ep_incompatibility_details(NAME, devices[1].device)
"""


def test_a_gpu_that_can_be_used_has_nothing_against_it(tmp_path):
    run(tmp_path, INCOMPATIBILITY + """
        assert details["reasons_bitmask"] == 0 and not details["notes"], details
    """.replace("\n    ", "\n"))


def test_a_machine_without_nvrtc_says_so(tmp_path):
    """A session fails with that too, where it has to compile kernels."""
    run(tmp_path, INCOMPATIBILITY + """
        assert details["reasons_bitmask"] == 4, details
        for part in ("for GPU 'emulated GPU 1' kernels have to be compiled, and NVRTC 12 or 13 was not "
                     "found (tried ", "/libnvrtc.so, ", "/usr/local/cuda/lib64/libnvrtc.so.13", "): install it, or name it in INGOT_NVRTC; models that "
                     "were compiled with nv_target_sm for this GPU run without it"):
            assert part in details["notes"], details
        text = message(lambda: session(model(rows=3)).run(None, feeds(3)))
        assert "NVRTC 12 or 13 was not found (tried " in text, text
    """.replace("\n    ", "\n"), nvrtc=False)


def test_an_nvrtc_that_is_too_old_says_so(tmp_path):
    run(tmp_path, INCOMPATIBILITY + """
        assert details["reasons_bitmask"] == 4, details
        for part in ("for GPU 'emulated GPU 1' NVRTC 13.0 (", "libnvrtc.so.13) cannot compile for sm_80, the "
                     "newest that it knows is sm_75: install one that knows it"):
            assert part in details["notes"], details
    """.replace("\n    ", "\n"), INGOT_EMULATED_ARCH="75")


# Kernels that divide by sizes are worth fitting to them.
TURNED = """
    turned = model_of([helper.make_node("Transpose", ["x"], ["t"], perm=[2, 0, 1]),
                       helper.make_node("Relu", ["t"], ["y"])],
                      {"x": (TensorProto.FLOAT, ["a", "b", "c"])}, {"y": (TensorProto.FLOAT, ["c", "a", "b"])})
    def run(rows):
        x = np.random.default_rng(rows).normal(size=(rows, 5, 7)).astype(np.float32)
        np.testing.assert_allclose(made.run(None, {"x": x})[0], on_cpu(turned, {"x": x})[0], 1e-6)
    deadline = time.monotonic() + 120
"""


def test_a_new_shape_runs_while_its_kernels_compile(tmp_path):
    """The compiler stands still for fitted kernels: runs of new shapes take the general ones, and give
    right results. Once it goes on, the fitted ones take over."""
    run(tmp_path, TURNED + """
        nvrtc.ingot_emulated_hold(2)
        made = session(turned, nv_profile_min_shapes="x:1x5x7", nv_profile_opt_shapes="x:3x5x7",
                       nv_profile_max_shapes="x:99x5x7")
        for shapes in ([3], [64, 65, 66]):
            while nvrtc.ingot_emulated_waiting() == 0:
                for rows in shapes:
                    run(rows)
                assert time.monotonic() < deadline, "nothing was compiled for a new shape"
            general = set()
            for rows in shapes:
                run(rows)
                general.add(cuda.ingot_emulated_last(0))
            nvrtc.ingot_emulated_hold(0)
            while cuda.ingot_emulated_last(0) in general:
                run(shapes[0])
                assert time.monotonic() < deadline, "the fitted kernels were never launched"
            nvrtc.ingot_emulated_hold(2)
        nvrtc.ingot_emulated_hold(0)  # else the process does not end
    """.replace("\n    ", "\n"))


def test_a_new_shape_without_profiles_compiles_nothing(tmp_path):
    """The kernels take any shape: while the compiler stands still, new ones run."""
    run(tmp_path, TURNED + """
        made = session(turned)
        run(3)
        compiled = nvrtc.ingot_emulated_compiled()
        nvrtc.ingot_emulated_hold(1)
        for rows in (64, 65, 1):
            run(rows)
        assert nvrtc.ingot_emulated_compiled() == compiled
        nvrtc.ingot_emulated_hold(0)
    """.replace("\n    ", "\n"))


LAYERS = """
def layers(seed, size=512):
    random = np.random.default_rng(seed)
    weights = {f"w{i}": random.normal(size=(size, size)).astype(np.float32) / 16 for i in range(3)}
    nodes = [helper.make_node("MatMul", ["x", "w0"], ["a"]), helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node("MatMul", ["b", "w1"], ["c"]), helper.make_node("Tanh", ["c"], ["d"]),
             helper.make_node("MatMul", ["d", "w2"], ["y"])]
    return model_of(nodes, {"x": (TensorProto.FLOAT, ["n", size])}, {"y": (TensorProto.FLOAT, ["n", size])},
                    weights)
weights = 3 * 512 * 512 * 4
first, second = layers(1), layers(2)
x = feeds(2, 512)
expected = {1: on_cpu(first, x)[0], 2: on_cpu(second, x)[0]}
def check_results(made, seed):
    np.testing.assert_allclose(made.run(None, x)[0], expected[seed], 1e-4, 1e-4)
def used():
    gc.collect()
    return cuda.ingot_emulated_used(0)
"""


def test_sessions_of_one_model_hold_its_weights_once(tmp_path):
    """Built from a model in memory and from one with its weights in a file, or loaded from a compiled one."""
    run(tmp_path, LAYERS + textwrap.dedent("""
        onnx.save(first, "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
        made = onnxruntime.SessionOptions()
        made.add_provider_for_devices([devices[0]], {})
        for seed in (1, 2):
            onnxruntime.ModelCompiler(made, layers(seed).SerializeToString(), embed_compiled_data_into_model=False
                                      ).compile_to_file(f"ctx{seed}.onnx")
        sources = [first, "m.onnx", "ctx1.onnx", "ctx1.onnx"]
        before, kept, taken = used(), [], []
        for source in sources:
            kept.append(session(source))
            check_results(kept[-1], 1)
            taken.append(used() - before)
        assert weights < taken[0] < 1.2 * weights, taken
        assert taken[3] < taken[0] + weights / 10, taken
        kept.append(session("ctx2.onnx"))
        check_results(kept[-1], 2)
        assert used() - before > taken[3] + weights, "other weights were not taken for these"
        for made in kept[:4]:
            check_results(made, 1)
        order = [1, 0, 3]  # to close
        for i in order:
            kept[i] = made = None
            for other, seed in zip(kept, (1, 1, 1, 1, 2)):
                if other is not None:
                    check_results(other, seed)
            assert used() - before > 2 * weights
        kept[2] = other = None
        assert used() - before < 1.2 * weights
        check_results(kept[4], 2)
        kept.clear()
        assert used() - before < weights / 10, used() - before
    """))


def test_a_cache_may_be_updated_in_place(tmp_path):
    """Past and present of GroupQueryAttention in one buffer, as onnxruntime-genai has them: the results of each
    step are those of ONNX Runtime's own provider on buffers apart."""
    run(tmp_path, """
        floats, ints, rows, size = TensorProto.FLOAT, TensorProto.INT32, 2, 16
        made = helper.make_graph(
            [helper.make_node("GroupQueryAttention", ["q", "k", "v", "pk", "pv", "last", "total"], ["y", "nk", "nv"],
                              domain="com.microsoft", num_heads=4, kv_num_heads=2)], "g",
            [helper.make_tensor_value_info(*one) for one in (
                ("q", floats, [rows, "s", 4 * size]), ("k", floats, [rows, "s", 2 * size]),
                ("v", floats, [rows, "s", 2 * size]), ("pk", floats, [rows, 2, 24, size]),
                ("pv", floats, [rows, 2, 24, size]), ("last", ints, [rows]), ("total", ints, []))],
            [helper.make_tensor_value_info(*one) for one in (
                ("y", floats, [rows, "s", 4 * size]), ("nk", floats, [rows, 2, 24, size]), ("nv", floats, [rows, 2, 24, size]))])
        made = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)],
                                 ir_version=9)
        rng = np.random.default_rng(0)
        caches = {name: np.zeros((rows, 2, 24, size), np.float32) for name in ("pk", "pv")}
        shared = {name: value(array) for name, array in caches.items()}
        decoder, length = session(made), 0
        for steps in (5, 1, 1):
            length += steps
            fed = {"q": rng.normal(size=(rows, steps, 4 * size)).astype(np.float32),
                   "k": rng.normal(size=(rows, steps, 2 * size)).astype(np.float32),
                   "v": rng.normal(size=(rows, steps, 2 * size)).astype(np.float32),
                   "last": np.full(rows, length - 1, np.int32), "total": np.array(length, np.int32)}
            right = on_cpu(made, {**fed, **caches})
            caches = dict(zip(("pk", "pv"), right[1:]))
            binding, y = decoder.io_binding(), value(np.zeros_like(right[0]))
            for name, array in fed.items():
                binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array) if name in ("last", "total")
                                            else value(array))
            for past, present in (("pk", "nk"), ("pv", "nv")):
                binding.bind_ortvalue_input(past, shared[past])
                binding.bind_ortvalue_output(present, shared[past])
            binding.bind_ortvalue_output("y", y)
            decoder.run_with_iobinding(binding)
            np.testing.assert_allclose(y.numpy(), right[0], atol=2e-3)  # TF32
            for name, array in caches.items():
                np.testing.assert_array_equal(shared[name].numpy()[:, :, :length], array[:, :, :length])
    """.replace("\n    ", "\n"))
