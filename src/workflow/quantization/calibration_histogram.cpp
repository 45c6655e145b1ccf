// SPDX-License-Identifier: Apache-2.0
#include "workflow/quantization/calibration_histogram.h"

#include "base/error.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace ingot {

namespace {

constexpr size_t levels = 128; // of int8 magnitudes
constexpr size_t first_candidate = 128;
constexpr double largest_level = 127;

constexpr std::array<std::pair<CalibrationMethod, std::string_view>, 6> names = {
    {{CalibrationMethod::Entropy2, "entropy2"},
     {CalibrationMethod::Entropy, "entropy"},
     {CalibrationMethod::MinMax, "minmax"},
     {CalibrationMethod::Percentile, "percentile"},
     {CalibrationMethod::Legacy, "legacy"},
     {CalibrationMethod::Mse, "mse"}}};

/// sum P ln(P / Q) over the bins [0, i), where P has `beyond` added to the last bin and Q is P
/// reduced to 128 levels: the non-empty bins of a level share its mass equally.
double divergence(std::span<const double> bins, size_t i, double beyond) {
    auto begin_of = [i](size_t level) { return (level * i + levels - 1) / levels; };
    std::array<double, levels> share{};
    double reference = beyond;
    double reduced = 0;
    for (size_t level = 0; level < levels; ++level) {
        double mass = 0;
        double filled = 0;
        for (size_t j = begin_of(level); j < begin_of(level + 1); ++j) {
            mass += bins[j];
            filled += bins[j] > 0 ? 1 : 0;
        }
        reduced += mass;
        share[level] = mass / std::max(filled, 1.0);
    }
    reference += reduced;
    if (reduced == 0 || (beyond > 0 && bins[i - 1] == 0)) {
        return std::numeric_limits<double>::infinity();
    }
    double sum = 0;
    for (size_t level = 0; level < levels; ++level) {
        double q = share[level] / reduced;
        for (size_t j = begin_of(level); j < begin_of(level + 1); ++j) {
            double p = (bins[j] + (j + 1 == i ? beyond : 0)) / reference;
            sum += p > 0 ? p * std::log(p / q) : 0;
        }
    }
    return sum;
}

struct Candidate {
    size_t bins = 0;
    double cost = std::numeric_limits<double>::infinity();
};

Candidate least_divergence(std::span<const double> bins, bool last_of_equal) {
    double beyond = 0;
    for (size_t j = first_candidate; j < bins.size(); ++j) {
        beyond += bins[j];
    }
    Candidate best{first_candidate, std::numeric_limits<double>::infinity()};
    for (size_t i = first_candidate; i <= bins.size(); ++i) {
        double cost = divergence(bins, i, beyond);
        if (cost < best.cost || (last_of_equal && cost == best.cost)) {
            best = {i, cost};
        }
        beyond -= i < bins.size() ? bins[i] : 0; // exact: counts are whole numbers below 2^53
    }
    return best;
}

double edge_of_share(std::span<const uint64_t> counts, double width, double share) {
    double total = 0;
    for (uint64_t c : counts) {
        total += static_cast<double>(c);
    }
    double sum = 0;
    for (size_t j = 0; j < counts.size(); ++j) {
        sum += static_cast<double>(counts[j]) / total;
        if (sum >= share) {
            return static_cast<double>(j) * width;
        }
    }
    return static_cast<double>(counts.size()) * width;
}

double least_squares(std::span<const uint64_t> counts, double width) {
    auto middle = [width](size_t j) { return (static_cast<double>(j) + 0.5) * width; };
    Candidate best{first_candidate, std::numeric_limits<double>::infinity()};
    for (size_t i = first_candidate; i < counts.size(); ++i) {
        double step = middle(i) / largest_level;
        double sum = 0;
        for (size_t j = 0; j < counts.size(); ++j) {
            double x = middle(j);
            double error = std::min(std::nearbyint(x / step), largest_level) * step - x;
            sum += error * error * static_cast<double>(counts[j]);
        }
        if (sum < best.cost) {
            best = {i, sum};
        }
    }
    return middle(best.bins);
}

} // namespace

std::string_view name(CalibrationMethod m) {
    for (const auto& [method, text] : names) {
        if (method == m) {
            return text;
        }
    }
    return "";
}

CalibrationMethod calibration_method(std::string_view wanted) {
    std::vector<std::string> known;
    for (const auto& [method, text] : names) {
        if (text == wanted) {
            return method;
        }
        known.emplace_back(text);
    }
    fail(ErrorCode::InvalidArgument, "there is no calibration algorithm '", wanted, "': expected ",
         join(known, ", "));
}

void check_options(const CalibrationOptions& o) {
    auto check = [](std::string_view what, double got, double most) {
        require(got >= 0 && got <= most, ErrorCode::InvalidArgument, "calibration: ", what, " is ",
                got, ", expected 0 to ", most);
    };
    check("percentile", o.percentile, 100);
    check("quantile", o.quantile, 1);
    check("regression cutoff", o.cutoff, 1);
}

double without_costly_clipping(std::span<const uint64_t> counts, double width, double threshold) {
    double range = static_cast<double>(counts.size()) * width;
    auto cost = [&](double t) {
        double clipped = 0;
        double kept = 0;
        for (size_t j = 1; j < counts.size(); ++j) {
            double beyond = (static_cast<double>(j) + 0.5) * width - t;
            auto count = static_cast<double>(counts[j]);
            clipped += beyond > 0 ? count * beyond * beyond : 0;
            kept += beyond > 0 ? 0 : count;
        }
        double step = t / largest_level;
        constexpr double variance_of_rounding = 12; // step^2 over this
        return clipped + kept * step * step / variance_of_rounding;
    };
    double most = cost(range);
    while (threshold < range && cost(threshold) > most) {
        threshold += width;
    }
    return std::min(threshold, range);
}

double calibration_threshold(std::span<const uint64_t> counts, double width,
                             const CalibrationOptions& o) {
    check_options(o);
    double range = static_cast<double>(counts.size()) * width;
    switch (o.method) {
    case CalibrationMethod::MinMax:
        return range;
    case CalibrationMethod::Percentile:
        return edge_of_share(counts, width, o.percentile / 100);
    case CalibrationMethod::Legacy:
        return std::max(edge_of_share(counts, width, o.quantile), o.cutoff * range);
    default:
        break;
    }
    if (counts.size() <= first_candidate) {
        return range;
    }
    if (o.method == CalibrationMethod::Mse) {
        return least_squares(counts, width);
    }
    std::vector<double> bins(counts.begin(), counts.end());
    bool second = o.method == CalibrationMethod::Entropy2;
    bins[0] = second ? 0 : bins[1];
    auto best = static_cast<double>(least_divergence(bins, !second).bins);
    return without_costly_clipping(counts, width, (best + (second ? 0.5 : 0)) * width);
}

void CalibrationHistogram::reach(double magnitude) {
    int exponent = 0;
    std::frexp(magnitude, &exponent);
    if (largest_ == 0) {
        exponent_ = exponent;
    }
    for (; exponent_ < exponent; ++exponent_) {
        for (size_t j = 0; j < bin_count; ++j) {
            bins_[j] = j < bin_count / 2 ? bins_[2 * j] + bins_[2 * j + 1] : 0;
        }
    }
    largest_ = std::max(largest_, magnitude);
}

template <class Get>
void CalibrationHistogram::add_values(int64_t count, const Get& get) {
    double most = largest_;
    for (int64_t i = 0; i < count; ++i) {
        double x = std::fabs(get(i));
        most = x > most && x <= std::numeric_limits<double>::max() ? x : most;
    }
    if (most > largest_) {
        reach(most);
    }
    const double per_width = largest_ > 0 ? 1 / bin_width() : 0;
    for (int64_t i = 0; i < count; ++i) {
        double x = std::fabs(get(i));
        if (x <= most) {
            ++bins_[static_cast<size_t>(x * per_width)];
        } else {
            ++skipped_;
        }
    }
}

void CalibrationHistogram::add(const Tensor& t) {
    require(is_float(t.dtype()), ErrorCode::InvalidArgument,
            "calibration observes float tensors, got ", t.dtype());
    bins_.resize(bin_count);
    if (t.dtype() == DType::F32) {
        const float* x = t.as<float>().data();
        add_values(t.count(), [x](int64_t i) { return static_cast<double>(x[i]); });
    } else {
        add_values(t.count(), [&](int64_t i) { return t.get_f64(i); });
    }
}

std::span<const uint64_t> CalibrationHistogram::counts() const {
    if (bins_.empty()) {
        return {};
    }
    auto last = largest_ > 0 ? static_cast<size_t>(largest_ / bin_width()) : 0;
    return std::span(bins_).first(last + 1);
}

std::string CalibrationHistogram::bytes() const {
    std::string out;
    auto put = [&out](auto v) { out.append(reinterpret_cast<const char*>(&v), sizeof v); };
    put(int64_t{exponent_});
    put(largest_);
    put(skipped_);
    for (size_t j = 0; j < bin_count; ++j) {
        put(bins_.empty() ? uint64_t{0} : bins_[j]);
    }
    return out;
}

std::optional<CalibrationHistogram> CalibrationHistogram::from_bytes(std::string_view bytes) {
    constexpr size_t words = 3 + bin_count;
    if (bytes.size() != words * sizeof(uint64_t)) {
        return std::nullopt;
    }
    std::vector<uint64_t> all(words);
    std::memcpy(all.data(), bytes.data(), bytes.size());
    CalibrationHistogram h;
    auto exponent = static_cast<int64_t>(all[0]);
    h.largest_ = std::bit_cast<double>(all[1]);
    h.skipped_ = all[2];
    h.bins_.assign(all.begin() + 3, all.end());
    int fits = 0;
    std::frexp(h.largest_, &fits);
    bool good =
        std::isfinite(h.largest_) && h.largest_ >= 0 && (h.largest_ == 0 || fits == exponent);
    h.exponent_ = static_cast<int>(exponent);
    return good ? std::optional(std::move(h)) : std::nullopt;
}

double CalibrationHistogram::bin_width() const {
    return std::ldexp(1.0, exponent_ - 11);
}

} // namespace ingot
