// SPDX-License-Identifier: Apache-2.0
// Tactic: an algorithm of a family with its parameters for a problem. An algorithm declares
// them once, as a struct:
//
//   struct Gemv {
//       static constexpr std::string_view pattern = "gemv_s{share}";
//       int share = 1; // warps that share a column
//       template <class Self, class F>
//       static void fields(Self& self, F&& field) {
//           field("share", self.share);
//       }
//   };
//
// Names, parsing, hashes and entries of the timing cache follow from the pattern and the fields.
// Every parameter is part of the name; values that follow from the problem are no parameters.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace ingot::kernels {

/// Receives each parameter with its name.
struct ParameterVisitor {
    virtual ~ParameterVisitor() = default;
    virtual void field(std::string_view name, int& v) = 0;
    virtual void field(std::string_view name, std::string& v) = 0;
};

/// An algorithm at run time: one object for each struct of parameters.
struct Algorithm {
    std::string_view pattern; // names of tactics, with each field in braces
    std::shared_ptr<void> (*make)();
    void (*visit)(void* parameters, ParameterVisitor& v);
};

template <class P>
const Algorithm& algorithm_of() {
    static constexpr Algorithm algorithm = {
        P::pattern, [] { return std::static_pointer_cast<void>(std::make_shared<P>()); },
        [](void* parameters, ParameterVisitor& v) {
            P::fields(*static_cast<P*>(parameters),
                      [&v](std::string_view name, auto& field) { v.field(name, field); });
        }};
    return algorithm;
}

/// The base of an algorithm that has no parameters.
struct NoParameters {
    template <class Self, class F>
    static void fields(Self&, F&&) {}
};

struct Tactic {
    /// Stable: it can be forced and is stored in the timing cache. Unique among the tactics of a
    /// problem.
    std::string name;
    double cost_us = 0; // by the family's model
    int variant = 0;    // below Family::variants
    const Algorithm* algorithm = nullptr;
    std::shared_ptr<const void> parameters;

    template <class P>
    bool is() const {
        return algorithm == &algorithm_of<P>();
    }
    /// The parameters; null for a tactic of another algorithm.
    template <class P>
    const P* as() const {
        return is<P>() ? static_cast<const P*>(parameters.get()) : nullptr;
    }
};

Tactic make_tactic(const Algorithm& algorithm, std::shared_ptr<void> parameters, double cost_us);
template <class P>
Tactic make_tactic(P parameters, double cost_us) {
    return make_tactic(algorithm_of<P>(), std::make_shared<P>(std::move(parameters)), cost_us);
}

/// The tactic of this name, without a cost; nullopt for a name of another algorithm.
std::optional<Tactic> parse_tactic(const Algorithm& algorithm, std::string_view name);

/// The order of lists of tactics: best first.
inline bool cheaper(const Tactic& a, const Tactic& b) {
    return a.cost_us < b.cost_us;
}

} // namespace ingot::kernels
