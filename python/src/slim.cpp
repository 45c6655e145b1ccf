// SPDX-License-Identifier: Apache-2.0
// Slimming: what ingot/_slim.py makes ingot.slim() of.
#include "ingot/slim.h"

#include "bind.h"

#include <string>

namespace ingot::python {

namespace {

using NamedShapes = std::vector<std::pair<std::string, std::vector<int64_t>>>;

std::vector<SlimShape> shapes_of(const NamedShapes& given) {
    std::vector<SlimShape> out;
    for (const auto& [name, sizes] : given) {
        trt::Dims dims{};
        dims.nbDims = static_cast<int32_t>(sizes.size());
        if (sizes.size() > static_cast<size_t>(trt::Dims::MAX_DIMS)) {
            throw nb::value_error(("input '" + name + "' has more than 8 sizes").c_str());
        }
        std::copy(sizes.begin(), sizes.end(), dims.d);
        out.push_back({name.c_str(), dims});
    }
    return out;
}

/// (bytes of the model or none, report as JSON), or None.
nb::object slim_model(const nb::object& model, const std::string& path, const NamedShapes& inputs,
                      const std::vector<std::string>& skip, int64_t threshold, bool keep,
                      bool cut_strings, const std::string& output, bool external, bool check,
                      const NamedShapes& check_shapes,
                      const std::vector<std::pair<std::string, std::string>>& check_inputs,
                      int64_t seed, double atol, double rtol, trt::ILogger& logger) {
    const std::vector<SlimShape> input_shapes = shapes_of(inputs);
    const std::vector<SlimShape> run_shapes = shapes_of(check_shapes);
    std::vector<const char*> skipped;
    for (const std::string& s : skip) {
        skipped.push_back(s.c_str());
    }
    std::vector<SlimInput> files;
    for (const auto& [name, file] : check_inputs) {
        files.push_back({name.c_str(), file.c_str()});
    }
    SlimRequest r;
    r.inputShapes = input_shapes.data();
    r.nbInputShapes = static_cast<int32_t>(input_shapes.size());
    r.skipOptimizations = skipped.data();
    r.nbSkipOptimizations = static_cast<int32_t>(skipped.size());
    r.sizeThreshold = threshold;
    r.keepInitializerInputs = keep;
    r.cutStrings = cut_strings;
    r.output = output.empty() ? nullptr : output.c_str();
    r.saveAsExternalData = external;
    r.modelCheck = check;
    r.checkShapes = run_shapes.data();
    r.nbCheckShapes = static_cast<int32_t>(run_shapes.size());
    r.checkInputs = files.data();
    r.nbCheckInputs = static_cast<int32_t>(files.size());
    r.seed = seed;
    r.atol = atol;
    r.rtol = rtol;
    Py_buffer view{};
    const bool given = !model.is_none();
    if (given && PyObject_GetBuffer(model.ptr(), &view, PyBUF_SIMPLE) != 0) {
        throw nb::python_error();
    }
    trt::IHostMemory* told = nullptr;
    const std::unique_ptr<trt::IHostMemory> result(unlocked([&] {
        return slimModel(given ? view.buf : nullptr, static_cast<size_t>(view.len),
                         path.empty() ? nullptr : path.c_str(), r, &logger, &told);
    }));
    const std::unique_ptr<trt::IHostMemory> report(told);
    if (given) {
        PyBuffer_Release(&view);
    }
    if (result == nullptr) {
        return nb::none();
    }
    return nb::make_tuple(nb::bytes(result->data(), result->size()),
                          nb::str(static_cast<const char*>(report->data()), report->size()));
}

} // namespace

void bind_slim(nb::module_& m);

void bind_slim(nb::module_& m) {
    m.def("_slim_model", &slim_model, "model"_a.none(), "path"_a, "input_shapes"_a, "skip"_a,
          "size_threshold"_a, "keep_initializer_inputs"_a, "cut_strings"_a, "output"_a,
          "external"_a, "check"_a, "check_shapes"_a, "check_inputs"_a, "seed"_a, "atol"_a, "rtol"_a,
          "logger"_a);
}

} // namespace ingot::python
