// SPDX-License-Identifier: Apache-2.0
// Calibrators, whose methods Python classes define: get_batch_size(), get_batch(names) -> a list of
// addresses or None, read_calibration_cache() -> a buffer or None, write_calibration_cache(cache).
#include "callbacks.h"

#include <string>

namespace ingot::python {

namespace {

/// Whether a method can be called with so many arguments.
bool takes(const nb::object& method, size_t count) {
    const nb::object signature = nb::module_::import_("inspect").attr("signature")(method);
    const nb::object none = nb::none();
    nb::list arguments;
    for (size_t i = 0; i < count; ++i) {
        arguments.append(none);
    }
    try {
        signature.attr("bind")(*arguments);
        return true;
    } catch (const nb::python_error&) {
        return false;
    }
}

template <class Base>
class PyCalibrator : public Base {
public:
    NB_TRAMPOLINE(Base);

    int32_t getBatchSize() const noexcept override {
        return callback("get_batch_size", -1, [&] {
            return nb::cast<int32_t>(call_python(nb_trampoline, "get_batch_size"));
        });
    }
    bool getBatch(void* bindings[], const char* names[], int32_t count) noexcept override {
        return callback("get_batch", false, [&] {
            nb::list list;
            for (int32_t i = 0; i < count; ++i) {
                list.append(nb::str(names[i]));
            }
            const nb::object batch = call_python(nb_trampoline, "get_batch", list);
            if (batch.is_none() || nb::len(batch) == 0) {
                return false;
            }
            if (nb::len(batch) != static_cast<size_t>(count)) {
                const std::string text = "get_batch() returned " + std::to_string(nb::len(batch)) +
                                         " addresses for " + std::to_string(count) + " inputs";
                throw nb::value_error(text.c_str());
            }
            for (int32_t i = 0; i < count; ++i) {
                bindings[i] = pointer_from(batch[i]);
            }
            batch_ = batch;
            return true;
        });
    }
    const void* readCalibrationCache(std::size_t& length) noexcept override {
        return read("read_calibration_cache", cache_, length);
    }
    void writeCalibrationCache(const void* data, std::size_t length) noexcept override {
        write("write_calibration_cache", data, length);
    }

protected:
    /// `legacy`: TensorRT's signature of this method has a length.
    const void* read(const MethodName& name, std::string& kept, std::size_t& length,
                     bool legacy = false) noexcept {
        length = 0;
        return callback<const void*>(name.text, nullptr, [&]() -> const void* {
            const nb::object method = nb::borrow(nb_trampoline.base()).attr(name.text);
            const nb::object cache = legacy && !takes(method, 0) ? method(0) : method();
            if (cache.is_none()) {
                return nullptr;
            }
            Py_buffer view;
            if (PyObject_GetBuffer(cache.ptr(), &view, PyBUF_SIMPLE) != 0) {
                throw nb::python_error();
            }
            kept.assign(static_cast<const char*>(view.buf), static_cast<size_t>(view.len));
            PyBuffer_Release(&view);
            length = kept.size();
            return kept.empty() ? nullptr : kept.data();
        });
    }
    /// Hands over a memoryview, of a copy that may be kept.
    void write(const MethodName& name, const void* data, std::size_t length,
               bool legacy = false) noexcept {
        callback(name.text, 0, [&] {
            const nb::bytes copy(data, length);
            const nb::object view = nb::steal(PyMemoryView_FromObject(copy.ptr()));
            const nb::object method = nb::borrow(nb_trampoline.base()).attr(name.text);
            legacy && !takes(method, 1) ? method(view, length) : method(view);
            return 0;
        });
    }

private:
    std::string cache_;
    nb::object batch_; // whose addresses are being read
};

class PyLegacyCalibrator : public PyCalibrator<trt::IInt8LegacyCalibrator> {
public:
    double getQuantile() const noexcept override {
        return number("get_quantile", "quantile", 0.999);
    }
    double getRegressionCutoff() const noexcept override {
        return number("get_regression_cutoff", "regression_cutoff", 1);
    }
    const void* readHistogramCache(std::size_t& length) noexcept override {
        return read("read_histogram_cache", histograms_, length, true);
    }
    void writeHistogramCache(const void* data, std::size_t length) noexcept override {
        write("write_histogram_cache", data, length, true);
    }

private:
    double number(const char* method, const char* property, double otherwise) const noexcept {
        return callback(method, otherwise, [&] {
            const nb::object self = nb::borrow(nb_trampoline.base());
            return nb::hasattr(self, method)     ? nb::cast<double>(self.attr(method)())
                   : nb::hasattr(self, property) ? nb::cast<double>(self.attr(property))
                                                 : otherwise;
        });
    }

    std::string histograms_;
};

template <class T, class Trampoline = PyCalibrator<T>>
void calibrator(nb::module_& m, const char* name, const char* doc) {
    nb::class_<T, trt::IInt8Calibrator, Trampoline>(m, name, doc)
        .def(nb::init<>())
        .def("get_algorithm", &T::getAlgorithm, "CalibrationAlgoType that the class stands for.");
}

} // namespace

void bind_calibrators(nb::module_& m) {
    nb::class_<trt::IInt8Calibrator> base(
        m, "IInt8Calibrator",
        "Feeds a build sample inputs, or the cache of an earlier one. Subclass one of the classes "
        "below it and define get_batch_size(self) -> int, get_batch(self, names) -> list of "
        "addresses (device memory; host memory on the CPU backend) or None at the end, "
        "read_calibration_cache(self) -> bytes or another buffer, or None, and "
        "write_calibration_cache(self, cache), which gets a memoryview. Where an address is asked "
        "for, an array or a tensor stands for its own.");
    common(base);
    calibrator<trt::IInt8EntropyCalibrator>(m, "IInt8EntropyCalibrator",
                                            "Ranges of least Kullback-Leibler divergence.");
    calibrator<trt::IInt8EntropyCalibrator2>(m, "IInt8EntropyCalibrator2",
                                             "The one to take for convolutional networks.");
    calibrator<trt::IInt8MinMaxCalibrator>(m, "IInt8MinMaxCalibrator",
                                           "Ranges up to the largest value, for language models.");
    calibrator<trt::IInt8LegacyCalibrator, PyLegacyCalibrator>(
        m, "IInt8LegacyCalibrator",
        "Ranges by a quantile: define get_quantile() and get_regression_cutoff() too, both 0 to 1, "
        "and read_histogram_cache(), write_histogram_cache(cache), or with TensorRT's arguments "
        "read_histogram_cache(length), write_histogram_cache(cache, length).");
    calibrator<ingot::IInt8MseCalibrator>(m, "IInt8MseCalibrator",
                                          "Ranges of least mean squared error.");
}

} // namespace ingot::python
