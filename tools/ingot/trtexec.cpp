// SPDX-License-Identifier: Apache-2.0
// trtexec, also known as tensorrt_rtx: banner, notes, exit code.
#include "trtexec.h"

#include "api/options/build.h"
#include "api/options/common.h"
#include "api/options/measure.h"
#include "api/options/run.h"
#include "base/error.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "commands.h"
#include "engine/container.h"
#include "trtexec_runtime.h"

#include <chrono>
#include <cstdio>
#include <ctime>

namespace ingot::tool {

namespace {

constexpr int interrupted = 130; // exit code

/// The releases with these command lines.
struct Release {
    int major;
    int minor;
    int patch;
};
constexpr Release tensorrt{11, 1, 0};
constexpr Release rtx{1, 6, 0};

void line(std::FILE* to, char severity, const std::string& text) {
    std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    char stamp[32];
    std::strftime(stamp, sizeof(stamp), "%m/%d/%Y-%H:%M:%S", &local);
    std::fprintf(to, "[%s] [%c] %s\n", stamp, severity, text.c_str());
}

void log_to_lines(void*, LogLevel level, std::string_view message) {
    bool loud = level == LogLevel::Error || level == LogLevel::Warning;
    char severity = level == LogLevel::Error     ? 'E'
                    : level == LogLevel::Warning ? 'W'
                    : level == LogLevel::Info    ? 'I'
                                                 : 'V';
    line(loud ? stderr : stdout, severity, str("[Ingot] ", message));
}

/// "TensorRT.trtexec [TensorRT v110100] # trtexec --onnx=..."
std::string banner(const std::string& command, std::span<const std::string> arguments) {
    const Release& r = command == "tensorrt_rtx" ? rtx : tensorrt;
    int version = r.major * 10000 + r.minor * 100 + r.patch;
    std::string text = str("TensorRT.trtexec [TensorRT v", version, "] # ", command);
    for (const std::string& a : arguments) {
        append(text, str(" ", a));
    }
    return text;
}

std::string version_text() {
    return str(tensorrt.major, ".", tensorrt.minor, ".", tensorrt.patch, ".0");
}

void print_plan_version(const std::string& path) {
    auto file = MappedFile::open(path);
    uint32_t p =
        with_place([&] { return path; }, [&] { return Container(file->bytes(), file).producer(); });
    info(str("Plan was created with TensorRT version ", version_text(), " (Ingot ", p >> 16U, ".",
             (p >> 8U) & 255U, ".", p & 255U, ")"));
}

void run(std::span<const std::string> arguments) {
    TrtexecRun r;
    r.t = parse_trtexec(arguments);
    const Options& o = r.t.o;
    if (o.common().help) {
        std::fputs(trtexec_help().c_str(), stdout);
        return;
    }
    if (o.common().version) {
        info(str("Ingot ", INGOT_VERSION, ", command line of TensorRT ", version_text()));
        return;
    }
    set_log_sink(log_to_lines, nullptr, o.common().verbose ? LogLevel::Verbose : LogLevel::Warning);
    if (o.common().timeout > 0) {
        set_time_limit(std::chrono::milliseconds(static_cast<int64_t>(o.common().timeout * 1000)));
    }
    if (o.build().plan_version) {
        print_plan_version(o.common().load_engine);
        return;
    }
    if (!o.run().no_tf32) {
        info("TF32 is enabled by default. Add --noTF32 flag to further improve accuracy with some "
             "performance cost.");
    }
    for (const Note& n : r.t.notes) {
        n.warning ? warning(n.text) : info(n.text);
    }
    for (const std::string& text : option_lines(r.t)) {
        info(text);
    }
    open_engine(r);
    set_weight_budget(r);
    bool elsewhere = o.build().runtime_platform != "SameAsBuild";
    if (!o.measure().time_deserialize && !elsewhere && !r.engine->weights_missing()) {
        choose_runtime(r);
    }
    if (o.measure().time_deserialize) {
        time_deserialization(o);
    } else if (o.build().skip_inference || elsewhere) {
        report_engine(r);
        info(str("Skipped inference phase since --",
                 o.build().skip_inference ? "skipInference" : "runtimePlatform", " is added."));
    } else {
        require(!r.engine->weights_missing(), ErrorCode::InvalidArgument,
                o.common().load_engine.empty() ? o.common().output : o.common().load_engine,
                ": the engine has no weights, so nothing can run: give those of its model by "
                "--refitFromOnnx=FILE, or --skipInference to leave running out");
        run_inference(r);
    }
}

} // namespace

void info(const std::string& text) {
    line(stdout, 'I', text);
}

void warning(const std::string& text) {
    line(stderr, 'W', text);
}

void error_line(const std::string& text) {
    line(stderr, 'E', text);
}

int trtexec(const std::string& command, std::span<const std::string> arguments) {
    std::setvbuf(stdout, nullptr, _IOLBF, 0); // keeps the order of output and warnings in one file
    handle_sigint();
    std::string what = banner(command, arguments);
    std::printf("&&&& RUNNING %s\n", what.c_str());
    int code = 1;
    try {
        run(arguments);
        code = 0;
    } catch (const Error& e) {
        error_line(e.what());
        code = e.code() == ErrorCode::Interrupted ? interrupted : 1;
    } catch (const std::bad_alloc&) {
        error_line("out of memory");
    } catch (const std::exception& e) {
        error_line(str("internal error: ", e.what()));
    }
    std::printf("&&&& %s %s\n", code == 0 ? "PASSED" : "FAILED", what.c_str());
    return code;
}

} // namespace ingot::tool
