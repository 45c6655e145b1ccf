# SPDX-License-Identifier: Apache-2.0
"""All fields of config.pbtxt, and what Ray Serve makes of each: (verdict, reason). A message whose
verdict is INSIDE is judged by its own fields, whose paths begin with its path."""

HONOURED, NO_EFFECT, REFUSED, INSIDE = "honoured", "no effect", "refused", "inside"

FIELDS: dict[str, tuple[str, str]] = {
    "name": (HONOURED, "that of the folder"),
    "platform": (HONOURED, "tensorrt_plan or onnxruntime_onnx"),
    "backend": (HONOURED, "ingot, tensorrt or onnxruntime"),
    "runtime": (NO_EFFECT, "the package is the runtime"),
    "version_policy": (HONOURED, "read when the application is deployed"),
    "max_batch_size": (HONOURED, "rows of a batch"),
    "input": (INSIDE, ""),
    "input.name": (HONOURED, "checked against the engine"),
    "input.data_type": (HONOURED, "checked against the engine"),
    "input.format": (NO_EFFECT, "dims says all"),
    "input.dims": (HONOURED, "checked against the engine"),
    "input.reshape": (HONOURED, "the shape that the engine sees"),
    "input.is_shape_tensor": (HONOURED, "where max_batch_size is 0"),
    "input.allow_ragged_batch": (REFUSED, "requests of one shape are batched; leave the field out, and "
                                          "requests of other shapes run in batches of their own"),
    "input.optional": (REFUSED, "every request brings all inputs; leave the field out, or serve the model "
                                "with Triton Inference Server"),
    "input.is_non_linear_format_io": (REFUSED, "clients send and get rows"),
    "output": (INSIDE, ""),
    "output.name": (HONOURED, "checked against the engine"),
    "output.data_type": (HONOURED, "checked against the engine"),
    "output.dims": (HONOURED, "checked against the engine"),
    "output.reshape": (HONOURED, "the shape that the engine gives"),
    "output.label_filename": (NO_EFFECT, "classes are not looked up: scores are sent"),
    "output.is_shape_tensor": (HONOURED, "where max_batch_size is 0"),
    "output.is_non_linear_format_io": (REFUSED, "clients send and get rows"),
    "batch_input": (REFUSED, "let the model take what clients send"),
    "batch_output": (REFUSED, "let the model give what clients get"),
    "optimization": (INSIDE, ""),
    "optimization.graph": (NO_EFFECT, "all passes run"),
    "optimization.priority": (NO_EFFECT, "replicas are equal"),
    "optimization.cuda": (NO_EFFECT, "runs are recorded where that helps"),
    "optimization.execution_accelerators": (HONOURED, "as the table of its parameters says"),
    "optimization.input_pinned_memory": (NO_EFFECT, "inputs are gathered as they come"),
    "optimization.output_pinned_memory": (NO_EFFECT, "outputs are sent as they come"),
    "optimization.gather_kernel_buffer_threshold": (NO_EFFECT, "inputs are gathered as they come"),
    "optimization.eager_batching": (NO_EFFECT, "Ray Serve forms batches"),
    "dynamic_batching": (INSIDE, ""),
    "dynamic_batching.preferred_batch_size": (NO_EFFECT, "a batch takes whatever waits"),
    "dynamic_batching.max_queue_delay_microseconds": (HONOURED, "batch_wait_timeout_s of serve.batch"),
    "dynamic_batching.preserve_ordering": (REFUSED, "Ray Serve promises no order"),
    "dynamic_batching.priority_levels": (REFUSED, "Ray Serve has one queue; deploy the model twice"),
    "dynamic_batching.default_priority_level": (REFUSED, "Ray Serve has one queue; deploy the model twice"),
    "dynamic_batching.priority_queue_policy": (REFUSED, "Ray Serve has one queue; deploy the model twice"),
    "dynamic_batching.default_queue_policy": (INSIDE, ""),
    "dynamic_batching.default_queue_policy.max_queue_size": (HONOURED, "max_queued_requests of the deployment"),
    "dynamic_batching.default_queue_policy.timeout_action": (NO_EFFECT, "no request times out in a queue"),
    "dynamic_batching.default_queue_policy.default_timeout_microseconds": (
        REFUSED, "set request_timeout_s in Ray Serve's http_options and grpc_options"),
    "dynamic_batching.default_queue_policy.allow_timeout_override": (
        REFUSED, "set request_timeout_s in Ray Serve's http_options and grpc_options"),
    "sequence_batching": (REFUSED, "Ray Serve sends the requests of a sequence to any replica; let clients "
                                   "send the state"),
    "ensemble_scheduling": (REFUSED, "compose models in Python: ingot.ray.deployment() makes the nodes of a "
                                     "graph"),
    "instance_group": (INSIDE, ""),
    "instance_group.name": (NO_EFFECT, "Ray Serve names replicas"),
    "instance_group.kind": (HONOURED, "KIND_GPU, KIND_CPU or KIND_AUTO"),
    "instance_group.count": (HONOURED, "replicas; several of KIND_GPU share one GPU"),
    "instance_group.rate_limiter": (REFUSED, "Ray's resources are the limit: ray_actor_options of "
                                             "ingot.ray.deployment()"),
    "instance_group.gpus": (REFUSED, "Ray chooses the GPU of a replica; leave the field out"),
    "instance_group.secondary_devices": (REFUSED, "there is no DLA"),
    "instance_group.profile": (HONOURED, "one number: the optimisation profile"),
    "instance_group.passive": (REFUSED, "each replica is sent requests"),
    "instance_group.host_policy": (NO_EFFECT, "Ray places replicas"),
    "default_model_filename": (HONOURED, "in the folder of the version"),
    "cc_model_filenames": (NO_EFFECT, "one file serves every GPU"),
    "metric_tags": (NO_EFFECT, "Ray Serve's metrics have labels of their own"),
    "parameters": (HONOURED, "as the table of parameters says"),
    "model_warmup": (HONOURED, "after one run of each bucket"),
    "model_operations": (REFUSED, "build an engine with ingot build --staticPlugins"),
    "model_transaction_policy": (INSIDE, ""),
    "model_transaction_policy.decoupled": (REFUSED, "an engine gives one response to each request"),
    "model_repository_agents": (REFUSED, "the files are read as they lie"),
    "response_cache": (INSIDE, ""),
    "response_cache.enable": (REFUSED, "Ray Serve keeps no responses; put a cache in front"),
    "model_metrics": (NO_EFFECT, "Ray Serve's metrics have buckets of their own"),
}

# The rows of plugins/triton/fields.def: a configuration means the same in both front ends.
_PLANNED = (NO_EFFECT, "memory is planned before the first run")
_IN_ORDER = (NO_EFFECT, "operators run one after another")
PARAMETERS: dict[str, tuple[str, str]] = {
    "batch_invariant": (HONOURED, "true: an ONNX model is built so that a row's bits do not depend on its batch"),
    "buckets": (HONOURED, "row counts that are prepared; none: no padding"),
    "hang_timeout_ms": (HONOURED, "a longer run ends the process with exit code 87; 0: none does"),
    "threads": (HONOURED, "threads of an instance on the CPU"),
    "intra_op_thread_count": (HONOURED, "as threads; 0 is the default"),
    "inter_op_thread_count": _IN_ORDER,
    "execution_mode": _IN_ORDER,
    "execution_context_allocation_strategy": (NO_EFFECT, "each instance has memory of its own, once"),
    "enable_mem_arena": _PLANNED,
    "enable_mem_pattern": _PLANNED,
    "memory.enable_memory_arena_shrinkage": _PLANNED,
    "session.use_device_allocator_for_initializers": (NO_EFFECT, "instances share the weights"),
    "cudnn_conv_algo_search": (NO_EFFECT, "cuDNN is not used"),
    "gpu_mem_limit": _PLANNED,
    "arena_extend_strategy": _PLANNED,
    "do_copy_in_default_stream": (NO_EFFECT, "copies are in the order of the runs"),
}
_WHOLE = (NO_EFFECT, "a model is not divided")
_SECONDS = (NO_EFFECT, "a model is built in seconds")
_UNTIMED = (NO_EFFECT, "a build times nothing")
_OPEN = (NO_EFFECT, "sizes stay open")
_NO_DUMP = (NO_EFFECT, "nothing is dumped")
_NO_DLA = (REFUSED, "there is no DLA")
ACCELERATOR: dict[str, tuple[str, str]] = {
    "precision_mode": (HONOURED, "FP32 or FP16, for model.onnx; INT8 is refused"),
    "max_workspace_size_bytes": _PLANNED,
    "int8_calibration_table_name": (REFUSED, "build an engine with ingot build --int8 --calib"),
    "int8_use_native_calibration_table": (NO_EFFECT, "it belongs to INT8"),
    "trt_max_partition_iterations": _WHOLE,
    "trt_min_subgraph_size": _WHOLE,
    "trt_dla_enable": _NO_DLA,
    "trt_dla_core": _NO_DLA,
    "trt_engine_cache_enable": _SECONDS,
    "trt_engine_cache_path": _SECONDS,
    "trt_engine_cache_prefix": _SECONDS,
    "trt_dump_subgraphs": _WHOLE,
    "trt_force_sequential_engine_build": (NO_EFFECT, "one engine serves all devices"),
    "trt_context_memory_sharing_enable": _WHOLE,
    "trt_layer_norm_fp32_fallback": (NO_EFFECT, "norms compute in FP32"),
    "trt_timing_cache_enable": _UNTIMED,
    "trt_timing_cache_path": _UNTIMED,
    "trt_force_timing_cache": _UNTIMED,
    "trt_detailed_build_log": (NO_EFFECT, "the server's verbose log has the messages"),
    "trt_build_heuristics_enable": _UNTIMED,
    "trt_sparsity_enable": (NO_EFFECT, "weights are used as they are"),
    "trt_builder_optimization_level": _UNTIMED,
    "trt_auxiliary_streams": (NO_EFFECT, "layers run one after another"),
    "trt_tactic_sources": (NO_EFFECT, "all kernels are Ingot's own"),
    "trt_extra_plugin_lib_paths": (REFUSED, "build an engine with ingot build --staticPlugins"),
    "trt_profile_min_shapes": _OPEN,
    "trt_profile_max_shapes": _OPEN,
    "trt_profile_opt_shapes": _OPEN,
    "trt_cuda_graph_enable": (NO_EFFECT, "runs are recorded where that helps"),
    "trt_dump_ep_context_model": _NO_DUMP,
    "trt_ep_context_file_path": _NO_DUMP,
    "trt_ep_context_embed_mode": _NO_DUMP,
}
