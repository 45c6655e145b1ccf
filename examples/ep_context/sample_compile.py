#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles a model ahead of time with ONNX Runtime, and says what that saves:

  sample_compile.py -i model.onnx -o model_ctx.onnx [-p PROVIDER] [-e False]

-p  the execution provider (NvTensorRTRTXExecutionProvider)
-e  True: the engine is inside the compiled model; False: beside it
-po provider options as key=value

Without a GPU: INGOT_ALLOW_CPU=1.
"""
import argparse
import pathlib
import tempfile
import time

import onnxruntime

import ingot.onnxruntime


def truth(text):
    if text.lower() not in ("true", "false", "1", "0"):
        raise argparse.ArgumentTypeError(f"got {text!r}, expected True or False")
    return text.lower() in ("true", "1")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-i", "--input", required=True, type=pathlib.Path)
    parser.add_argument("-o", "--output", required=True, type=pathlib.Path)
    parser.add_argument("-p", "--provider", default=ingot.onnxruntime.get_ep_name())
    parser.add_argument("-po", "--provider-options", nargs="*", default=[], metavar="KEY=VALUE")
    parser.add_argument("-e", "--embed", type=truth, default=False)
    return parser.parse_args()


def session_options(arguments, **more):
    options = onnxruntime.SessionOptions()
    given = dict(pair.split("=", 1) for pair in arguments.provider_options)
    options.add_provider(arguments.provider, {**given, **more})
    return options


def timed(what, f):
    start = time.perf_counter()
    result = f()
    print(f"> {what}: {time.perf_counter() - start:.5g} sec", flush=True)
    return result


def load(path, options):
    return onnxruntime.InferenceSession(str(path), options)


def main():
    arguments = parse()
    ingot.onnxruntime.register()
    with tempfile.TemporaryDirectory() as cache:
        timed("Original session load time",
              lambda: load(arguments.input, session_options(arguments)))
        compiler = onnxruntime.ModelCompiler(session_options(arguments), str(arguments.input),
                                             embed_compiled_data_into_model=arguments.embed)
        timed("Compile time", lambda: compiler.compile_to_file(str(arguments.output)))
        print(f"> Compiled model saved at {arguments.output}")
        timed("Context model session load time",
              lambda: load(arguments.output, session_options(arguments)))
        load(arguments.output, session_options(arguments, nv_runtime_cache_path=cache))
        timed("Context model session load time with runtime cache",
              lambda: load(arguments.output, session_options(arguments, nv_runtime_cache_path=cache)))
    print("Program finished successfully.")


if __name__ == "__main__":
    main()
