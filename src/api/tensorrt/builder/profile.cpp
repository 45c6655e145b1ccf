// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/builder/profile.h"

#include "api/tensorrt/convert.h"
#include "api/tensorrt/unused.h"

#include <algorithm>
#include <limits>

namespace ingot::api {

namespace {

constexpr std::array<const char*, 3> words = {"min", "opt", "max"};

std::string checked_name(const char* name) {
    require(name != nullptr && *name != '\0', ErrorCode::InvalidArgument,
            "the name of the input is empty");
    return name;
}

size_t checked_selector(nv::OptProfileSelector select) {
    return static_cast<size_t>(checked(select, "the selector"));
}

} // namespace

// Checks min <= opt <= max and equal ranks of the shapes that are set.
void ProfileObject::check_triple(const std::string& input, const Triple& t, bool complete) {
    for (size_t a = 0; a < 3; ++a) {
        require(!complete || t[a].has_value(), ErrorCode::InvalidArgument, "input '", input,
                "': ", words[a], " is not set");
        for (size_t b = a + 1; b < 3; ++b) {
            if (!t[a] || !t[b]) {
                continue;
            }
            require(t[a]->size() == t[b]->size(), ErrorCode::InvalidArgument, "input '", input,
                    "': ", words[a], " is ", shape_text(*t[a]), " and ", words[b], " is ",
                    shape_text(*t[b]), ", expected equal ranks");
            for (size_t i = 0; i < t[a]->size(); ++i) {
                require((*t[a])[i] <= (*t[b])[i], ErrorCode::InvalidArgument, "input '", input,
                        "', dimension ", i, ": ", words[a], " is ", (*t[a])[i], " and ", words[b],
                        " is ", (*t[b])[i], ", expected ", words[a], " <= ", words[b]);
            }
        }
    }
}

bool ProfileObject::setDimensions(const char* input_name, nv::OptProfileSelector select,
                                  const nv::Dims& dims) noexcept {
    return report_.guard("IOptimizationProfile::setDimensions", false, [&] {
        std::string name = checked_name(input_name);
        size_t at = checked_selector(select);
        Shape shape = numbers_of(dims, str("input '", name, "': ", words[at]));
        for (int64_t d : shape) {
            require(d >= 0, ErrorCode::InvalidArgument, "input '", name, "': ", words[at], " is ",
                    text_of(dims), ", expected sizes of 0 or more");
        }
        Triple t = shapes_.contains(name) ? shapes_[name] : Triple();
        t[at] = std::move(shape);
        check_triple(name, t, false);
        shapes_[name] = std::move(t);
        return true;
    });
}

nv::Dims ProfileObject::getDimensions(const char* input_name,
                                      nv::OptProfileSelector select) const noexcept {
    auto it = input_name == nullptr ? shapes_.end() : shapes_.find(input_name);
    if (it == shapes_.end() || !is_one_of(select)) {
        return no_dims();
    }
    const std::optional<Shape>& shape = it->second[static_cast<size_t>(select)];
    return shape ? api_dims(*shape) : no_dims();
}

int32_t ProfileObject::getNbShapeValues(const char* input_name) const noexcept {
    auto it = input_name == nullptr ? values_.end() : values_.find(input_name);
    for (size_t i = 0; it != values_.end() && i < 3; ++i) {
        if (it->second[i]) {
            return static_cast<int32_t>(it->second[i]->size());
        }
    }
    return -1;
}

bool ProfileObject::setExtraMemoryTarget(float target) noexcept {
    return report_.guard("IOptimizationProfile::setExtraMemoryTarget", false, [&] {
        require(target >= 0 && target <= 1, ErrorCode::InvalidArgument, "the target is ", target,
                ", expected 0 to 1");
        extra_memory_ = target;
        if (target != 1) {
            log_unused(report_, "IOptimizationProfile::setExtraMemoryTarget", false,
                       "a context takes the memory that the largest shapes need, and no more");
        }
        return true;
    });
}

bool ProfileObject::isValid() const noexcept {
    return report_.guard("IOptimizationProfile::isValid", false, [&] {
        try {
            check();
            return true;
        } catch (const Error&) {
            return false;
        }
    });
}

bool ProfileObject::setShapeValuesV2(const char* input_name, nv::OptProfileSelector select,
                                     const int64_t* values, int32_t nb_values) noexcept {
    return report_.guard("IOptimizationProfile::setShapeValuesV2", false, [&] {
        std::string name = checked_name(input_name);
        size_t at = checked_selector(select);
        require(nb_values >= 0 && (values != nullptr || nb_values == 0), ErrorCode::InvalidArgument,
                "input '", name, "': nbValues is ", nb_values,
                values == nullptr ? " and values is nullptr" : "");
        Triple t = values_.contains(name) ? values_[name] : Triple();
        t[at] = Shape(values, values + nb_values);
        check_triple(name, t, false);
        values_[name] = std::move(t);
        return true;
    });
}

const int64_t* ProfileObject::getShapeValuesV2(const char* input_name,
                                               nv::OptProfileSelector select) const noexcept {
    auto it = input_name == nullptr ? values_.end() : values_.find(input_name);
    if (it == values_.end() || !is_one_of(select)) {
        return nullptr;
    }
    const std::optional<Shape>& v = it->second[static_cast<size_t>(select)];
    return v ? v->data() : nullptr;
}

bool ProfileObject::setShapeValues(const char* input_name, nv::OptProfileSelector select,
                                   const int32_t* values, int32_t nb_values) noexcept {
    if (values == nullptr || nb_values < 0) {
        return setShapeValuesV2(input_name, select, nullptr, nb_values);
    }
    return report_.guard("IOptimizationProfile::setShapeValues", false, [&] {
        std::vector<int64_t> wide(values, values + nb_values);
        return setShapeValuesV2(input_name, select, wide.data(), nb_values);
    });
}

const int32_t* ProfileObject::getShapeValues(const char* input_name,
                                             nv::OptProfileSelector select) const noexcept {
    const int64_t* wide = getShapeValuesV2(input_name, select);
    if (wide == nullptr) {
        return nullptr;
    }
    return report_.guard(
        "IOptimizationProfile::getShapeValues", static_cast<const int32_t*>(nullptr), [&] {
            auto& narrow = narrow_[input_name][static_cast<size_t>(select)];
            narrow.clear();
            for (int32_t i = 0; i < getNbShapeValues(input_name); ++i) {
                constexpr int64_t least = std::numeric_limits<int32_t>::min();
                constexpr int64_t most = std::numeric_limits<int32_t>::max();
                narrow.push_back(static_cast<int32_t>(std::clamp(wide[i], least, most)));
            }
            return static_cast<const int32_t*>(narrow.data());
        });
}

void ProfileObject::check() const {
    for (const auto& [name, t] : shapes_) {
        check_triple(name, t, true);
    }
    for (const auto& [name, t] : values_) {
        check_triple(name, t, true);
    }
}

std::map<std::string, std::array<Shape, 3>> ProfileObject::values() const {
    check();
    std::map<std::string, std::array<Shape, 3>> out;
    for (const auto& [name, t] : values_) {
        out.emplace(name, std::array{*t[0], *t[1], *t[2]});
    }
    return out;
}

Profile ProfileObject::profile() const {
    check();
    Profile p;
    for (const auto& [name, t] : shapes_) {
        p.inputs.push_back({name, *t[0], *t[1], *t[2]});
    }
    return p;
}

} // namespace ingot::api
