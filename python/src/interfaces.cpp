// SPDX-License-Identifier: Apache-2.0
// Interfaces that applications implement: logger, error recorder, profiler, progress monitor,
// output allocator, debug listener. Allocators and streams are in memory_interfaces.cpp.
#include "callbacks.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <ctime>
#include <map>
#include <mutex>
#include <string>

namespace ingot::python {

namespace {

using Severity = trt::ILogger::Severity;

/// The logger that needs no Python: prints lines such as "[11/21/2026-13:11:33] [TRT] [W] text".
class ConsoleLogger : public trt::ILogger {
public:
    explicit ConsoleLogger(Severity least) : min_severity(least) {}

    void log(Severity severity, const char* text) noexcept override {
        if (severity > min_severity) {
            return;
        }
        const std::time_t now = std::time(nullptr);
        std::tm local{};
        localtime_r(&now, &local);
        char date[32];
        std::strftime(date, sizeof date, "%m/%d/%Y-%H:%M:%S", &local);
        const auto level = std::min<size_t>(static_cast<size_t>(severity), 4);
        std::FILE* const out = severity <= Severity::kWARNING ? stderr : stdout;
        std::fprintf(out, "[%s] [TRT] [%c] %s\n", date, "FEWIV"[level], text);
        std::fflush(out);
    }

    Severity min_severity;
};

class PyConsoleLogger : public ConsoleLogger {
public:
    NB_TRAMPOLINE(ConsoleLogger);

    void log(Severity severity, const char* text) noexcept override {
        const bool done = callback("Logger.log", true, [&] {
            nb::object ignored;
            return call_overridden(nb_trampoline, "log", ignored, severity, text);
        });
        if (!done) {
            ConsoleLogger::log(severity, text);
        }
    }
};

class PyLogger : public trt::ILogger {
public:
    NB_TRAMPOLINE(trt::ILogger);

    void log(Severity severity, const char* text) noexcept override {
        callback("ILogger.log", 0, [&] {
            call_python(nb_trampoline, "log", severity, text);
            return 0;
        });
    }
};

void bind_loggers(nb::module_& m) {
    nb::class_<trt::ILogger, PyLogger> logger(
        m, "ILogger",
        "Receives messages. Subclass it, call super().__init__(), and define "
        "log(self, severity, msg). Messages come from several threads, at any time.");
    common(logger);
    nb::enum_<Severity>(logger, "Severity", nb::is_arithmetic(),
                        "How bad a message is; lower is worse.")
        .value("INTERNAL_ERROR", Severity::kINTERNAL_ERROR, "A bug in Ingot")
        .value("ERROR", Severity::kERROR, "A call failed")
        .value("WARNING", Severity::kWARNING, "Something was adapted")
        .value("INFO", Severity::kINFO)
        .value("VERBOSE", Severity::kVERBOSE)
        .export_values();
    logger.def(nb::init<>())
        .def("log", &trt::ILogger::log, "severity"_a, "msg"_a,
             "Receives a message; called from several threads.");
    nb::class_<ConsoleLogger, trt::ILogger, PyConsoleLogger>(
        m, "Logger",
        "Prints messages of min_severity or worse: errors and warnings to standard error, others "
        "to standard output.")
        .def(nb::init<Severity>(),
             "min_severity"_a.sig("ILogger.Severity.WARNING") = Severity::kWARNING)
        .def_rw("min_severity", &ConsoleLogger::min_severity,
                "Messages that are less severe are dropped.")
        .def(
            "log",
            [](ConsoleLogger& self, Severity s, const char* t) { self.ConsoleLogger::log(s, t); },
            "severity"_a, "msg"_a, "Receives a message; called from several threads.");
}

class PyErrorRecorder : public trt::IErrorRecorder {
public:
    NB_TRAMPOLINE(trt::IErrorRecorder);

    int32_t getNbErrors() const noexcept override {
        return callback("IErrorRecorder.num_errors", 0, [&] {
            const nb::object self = nb::borrow(nb_trampoline.base());
            const nb::object errors = nb::hasattr(self, "get_num_errors")
                                          ? nb::object(self.attr("get_num_errors"))
                                          : nb::object(self.attr("num_errors"));
            return nb::cast<int32_t>(PyCallable_Check(errors.ptr()) != 0 ? errors() : errors);
        });
    }
    trt::ErrorCode getErrorCode(int32_t index) const noexcept override {
        return callback("IErrorRecorder.get_error_code", trt::ErrorCode::kUNSPECIFIED_ERROR, [&] {
            return nb::cast<trt::ErrorCode>(call_python(nb_trampoline, "get_error_code", index));
        });
    }
    const char* getErrorDesc(int32_t index) const noexcept override {
        return callback<const char*>("IErrorRecorder.get_error_desc", "", [&] {
            const std::lock_guard lock(mutex_);
            std::string& text = descriptions_[index];
            text = nb::cast<std::string>(call_python(nb_trampoline, "get_error_desc", index));
            return text.c_str();
        });
    }
    bool hasOverflowed() const noexcept override {
        return callback("IErrorRecorder.has_overflowed", false, [&] {
            return nb::cast<bool>(call_python(nb_trampoline, "has_overflowed"));
        });
    }
    void clear() noexcept override {
        callback("IErrorRecorder.clear", 0, [&] {
            call_python(nb_trampoline, "clear");
            return 0;
        });
    }
    bool reportError(trt::ErrorCode code, const char* text) noexcept override {
        return callback("IErrorRecorder.report_error", false, [&] {
            const nb::object fatal = call_python(nb_trampoline, "report_error", code, text);
            return PyObject_IsTrue(fatal.ptr()) == 1;
        });
    }
    // The Python object is kept alive by what it was given to.
    int32_t incRefCount() noexcept override { return ++count_; }
    int32_t decRefCount() noexcept override { return --count_; }

private:
    mutable std::mutex mutex_;
    mutable std::map<int32_t, std::string> descriptions_;
    std::atomic<int32_t> count_{0};
};

void bind_recorder(nb::module_& m) {
    nb::class_<trt::IErrorRecorder, PyErrorRecorder> recorder(
        m, "IErrorRecorder",
        "Collects errors. Subclass it and define num_errors (a method or property), "
        "get_error_code(i), get_error_desc(i), has_overflowed(), clear() and "
        "report_error(code, desc) -> bool. Calls come from several threads.");
    common(recorder);
    recorder.def("num_errors", &undefined, nb::sig("def num_errors(self) -> int"),
                 "Errors since the last clear().");
    recorder.def(nb::init<>())
        .def("report_error", &trt::IErrorRecorder::reportError, "val"_a, "desc"_a,
             "Called for every error, from the thread of the call that failed. The result is "
             "ignored.")
        .def("get_error_code", &trt::IErrorRecorder::getErrorCode, "arg0"_a,
             "The ErrorCodeTRT of an error.")
        .def("get_error_desc", &trt::IErrorRecorder::getErrorDesc, "arg0"_a,
             "The words of an error.")
        .def("has_overflowed", &trt::IErrorRecorder::hasOverflowed, "Whether errors were dropped.")
        .def("clear", &trt::IErrorRecorder::clear, "Forgets all errors.")
        .def_ro_static("MAX_DESC_LENGTH", &trt::IErrorRecorder::kMAX_DESC_LENGTH,
                       "A recorder may cut longer descriptions to as many characters.");
}

class PyProfiler : public trt::IProfiler {
public:
    NB_TRAMPOLINE(trt::IProfiler);

    void reportLayerTime(const char* layer, float ms) noexcept override {
        callback("IProfiler.report_layer_time", 0, [&] {
            call_python(nb_trampoline, "report_layer_time", layer, ms);
            return 0;
        });
    }
};

/// Prints what it gets.
class ConsoleProfiler : public trt::IProfiler {
public:
    void reportLayerTime(const char* layer, float ms) noexcept override {
        std::printf("%s: %gms\n", layer, static_cast<double>(ms));
    }
};

class PyProgressMonitor : public trt::IProgressMonitor {
public:
    NB_TRAMPOLINE(trt::IProgressMonitor);

    void phaseStart(const char* phase, const char* parent, int32_t steps) noexcept override {
        callback("IProgressMonitor.phase_start", 0, [&] {
            call_python(nb_trampoline, "phase_start", phase, parent, steps);
            return 0;
        });
    }
    bool stepComplete(const char* phase, int32_t step) noexcept override {
        return callback("IProgressMonitor.step_complete", false, [&] {
            const nb::object go_on = call_python(nb_trampoline, "step_complete", phase, step);
            return PyObject_IsTrue(go_on.ptr()) == 1;
        });
    }
    void phaseFinish(const char* phase) noexcept override {
        callback("IProgressMonitor.phase_finish", 0, [&] {
            call_python(nb_trampoline, "phase_finish", phase);
            return 0;
        });
    }
};

void bind_watchers(nb::module_& m) {
    nb::class_<trt::IProfiler, PyProfiler> profiler(
        m, "IProfiler",
        "Receives the time of every layer of a run: subclass it and define "
        "report_layer_time(self, layer_name, ms).");
    common(profiler);
    profiler.def(nb::init<>())
        .def("report_layer_time", &trt::IProfiler::reportLayerTime, "layer_name"_a, "ms"_a,
             "Called for each layer of a run, in the order of running, with milliseconds.");
    nb::class_<ConsoleProfiler, trt::IProfiler>(m, "Profiler", "Prints the time of every layer.")
        .def(nb::init<>());
    nb::class_<trt::IProgressMonitor, PyProgressMonitor> monitor(
        m, "IProgressMonitor",
        "Follows a build: subclass it and define phase_start(self, phase_name, parent_phase, "
        "num_steps), step_complete(self, phase_name, step) -> bool (False stops the build) and "
        "phase_finish(self, phase_name).");
    common(monitor);
    monitor.def(nb::init<>())
        .def("phase_start", &trt::IProgressMonitor::phaseStart, "phase_name"_a,
             "parent_phase"_a.none(), "num_steps"_a,
             "A phase of a build begins; parent_phase is the phase around it, or None.")
        .def("step_complete", &trt::IProgressMonitor::stepComplete, "phase_name"_a, "step"_a,
             "A step of a phase is done; return False to stop the build.")
        .def("phase_finish", &trt::IProgressMonitor::phaseFinish, "phase_name"_a,
             "A phase of a build ends.");
}

class PyOutputAllocator : public trt::IOutputAllocator {
public:
    NB_TRAMPOLINE(trt::IOutputAllocator);

    void* reallocateOutput(const char* name, void* memory, uint64_t size,
                           uint64_t alignment) noexcept override {
        return callback<void*>("IOutputAllocator.reallocate_output", nullptr, [&] {
            return pointer_from(call_python(nb_trampoline, "reallocate_output", name,
                                            as_int(memory), size, alignment));
        });
    }
    void* reallocateOutputAsync(const char* name, void* memory, uint64_t size, uint64_t alignment,
                                cudaStream_t stream) override {
        nb::object result;
        bool overridden = false;
        void* const address =
            callback<void*>("IOutputAllocator.reallocate_output_async", nullptr, [&] {
                overridden = call_overridden(nb_trampoline, "reallocate_output_async", result, name,
                                             as_int(memory), size, alignment, as_int(stream));
                const nb::object taken = std::move(result);
                return overridden ? pointer_from(taken) : nullptr;
            });
        return overridden || address != nullptr || CallScope::has_pending()
                   ? address
                   : reallocateOutput(name, memory, size, alignment);
    }
    void notifyShape(const char* name, const trt::Dims& dims) noexcept override {
        callback("IOutputAllocator.notify_shape", 0, [&] {
            call_python(nb_trampoline, "notify_shape", name, trt::Dims(dims));
            return 0;
        });
    }
};

class PyDebugListener : public trt::IDebugListener {
public:
    NB_TRAMPOLINE(trt::IDebugListener);

    bool processDebugTensor(const void* address, trt::TensorLocation location, trt::DataType type,
                            const trt::Dims& shape, const char* name,
                            cudaStream_t stream) override {
        return callback("IDebugListener.process_debug_tensor", false, [&] {
            const nb::object done =
                call_python(nb_trampoline, "process_debug_tensor", as_int(address), location, type,
                            trt::Dims(shape), name, as_int(stream));
            return PyObject_IsTrue(done.ptr()) == 1;
        });
    }
};

void bind_run_interfaces(nb::module_& m) {
    nb::class_<trt::IOutputAllocator, PyOutputAllocator> outputs(
        m, "IOutputAllocator",
        "Gives memory for outputs whose size is known only during the run: subclass it and define "
        "reallocate_output_async(self, tensor_name, memory, size, alignment, stream) -> int (or "
        "reallocate_output without stream) and notify_shape(self, tensor_name, shape). Addresses "
        "are integers, 0 for none; sizes are bytes.");
    common(outputs);
    outputs.def(nb::init<>());
    nb::class_<trt::IDebugListener, PyDebugListener> listener(
        m, "IDebugListener",
        "Sees debug tensors: subclass it and define process_debug_tensor(self, addr, location, "
        "type, shape, name, stream) -> bool. False fails the run.");
    common(listener);
    listener.def(
        "process_debug_tensor", &undefined,
        nb::sig("def process_debug_tensor(self, addr: int, location: TensorLocation, type: "
                "DataType, shape: Dims, name: str, stream: int) -> bool"),
        "Sees a tensor; False fails the run.");
    listener.def(nb::init<>());
}

} // namespace

void bind_memory_interfaces(nb::module_& m);

void bind_interfaces(nb::module_& m) {
    bind_loggers(m);
    bind_recorder(m);
    bind_watchers(m);
    bind_run_interfaces(m);
    bind_memory_interfaces(m);
}

} // namespace ingot::python
