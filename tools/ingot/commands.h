// SPDX-License-Identifier: Apache-2.0
// The commands: each takes the parsed options, prints to stdout, throws Error, returns an exit
// code.
#pragma once

#include <span>
#include <string>

namespace ingot {
class Options; // api/options.h
}

namespace ingot::tool {

int build(const Options& o);
int run(const Options& o);
int bench(const Options& o);
int inspect(const Options& o);
int report(const Options& o);
int check(const Options& o);
int compare(const Options& o);
int slim(const Options& o);
int calibrate(const Options& o);
int quantize(const Options& o);
int cache(const Options& o);
int sign(const Options& o);
int compat_layout(const Options& o);
int export_triton(const Options& o);
int serve(const Options& o);

/// trtexec with its own parser and reports. `command` is the name that it was called by. Returns
/// the exit code.
int trtexec(const std::string& command, std::span<const std::string> arguments);

/// onnxruntime_perf_test's command line, with its own parser too.
int perf_test(std::span<const std::string> arguments);

/// The page docs/operators.md, from the importers and the status list of the ONNX suite.
std::string operators_page(const std::string& status_file);

} // namespace ingot::tool
