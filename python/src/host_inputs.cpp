// SPDX-License-Identifier: Apache-2.0
// Values in host memory for the library to look at: what ingot/_compile.py makes samples and
// CompiledModel.find_not_finite() of.
#include "bind.h"

#include <algorithm>

namespace ingot::python {

namespace {

using Given = std::vector<std::tuple<uintptr_t, trt::DataType, std::vector<int64_t>>>;

std::vector<HostTensor> tensors_of(const Given& given) {
    std::vector<HostTensor> out;
    for (const auto& [address, type, sizes] : given) {
        if (sizes.size() > static_cast<size_t>(trt::Dims::MAX_DIMS)) {
            throw nb::value_error(
                ("input " + std::to_string(out.size()) + " has more than 8 sizes").c_str());
        }
        HostTensor t{reinterpret_cast<void*>(address), type, {}};
        t.dims.nbDims = static_cast<int32_t>(sizes.size());
        std::copy(sizes.begin(), sizes.end(), t.dims.d);
        out.push_back(t);
    }
    return out;
}

struct Found {
    std::string text;
    std::string layer;
    std::string value;
    std::vector<int64_t> index;
    std::vector<int64_t> shape;
    int64_t count;
    bool arises;
};

/// A tuple for each result, or None after an error.
nb::object find(const trt::ICudaEngine& engine, const Given& given) {
    const std::vector<HostTensor> inputs = tensors_of(given);
    std::vector<Found> found;
    const NotFiniteVisitor keep = [](const NotFiniteResult& r, void* user) {
        static_cast<std::vector<Found>*>(user)->push_back({r.text,
                                                           r.layer,
                                                           r.value,
                                                           {r.index.d, r.index.d + r.index.nbDims},
                                                           {r.dims.d, r.dims.d + r.dims.nbDims},
                                                           r.count,
                                                           r.arises});
    };
    const int32_t n = unlocked([&] {
        return findNotFinite(engine, inputs.data(), static_cast<int32_t>(inputs.size()), keep,
                             &found);
    });
    if (n < 0) {
        return nb::none();
    }
    nb::list out;
    for (const Found& f : found) {
        out.append(nb::make_tuple(f.text, f.layer, f.value, nb::tuple(nb::cast(f.index)),
                                  nb::tuple(nb::cast(f.shape)), f.count, f.arises));
    }
    return out;
}

} // namespace

void bind_host_inputs(nb::module_& m);

void bind_host_inputs(nb::module_& m) {
    m.def("_find_not_finite", &find, "engine"_a, "inputs"_a);
    m.def(
        "_add_sample_inputs",
        [](trt::IBuilderConfig& config, const Given& given) {
            const std::vector<HostTensor> inputs = tensors_of(given);
            return addSampleInputs(config, inputs.data(), static_cast<int32_t>(inputs.size()));
        },
        "config"_a, "inputs"_a);
}

} // namespace ingot::python
