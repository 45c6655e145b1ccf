// SPDX-License-Identifier: Apache-2.0
// The map that follows a group's main node, as a device function that the family's kernel calls
// with each result and its coordinates.
//
//     Epilogue e(problem, {{0}, {1, 2}, {3}}, 8);   // coordinates: axis 0, axes 1 and 2, axis 3
//     program.body += e.text();                     // uses "types" and "math"
//     args.pointer(...)...; e.add(args);            // last parameters of the kernel
//
// The text declares EPILOGUE_PARAMS and EPILOGUE_ARGS (with a leading comma, or empty), the types
// EpilogueIn and EpilogueOut (compute types) and EpilogueStored, and
//     EpilogueOut epilogue(EpilogueIn x, i32 c0, i32 c1, i32 c2 EPILOGUE_ARGS);
//     void epilogue_n(EpilogueOut* y, const EpilogueIn* x, i32 c0, i32 c1, i32 c2 EPILOGUE_ARGS);
// where epilogue_n does EPILOGUE_N results whose last coordinate starts at c2, a multiple of
// EPILOGUE_N. Without a map both give x.
#pragma once

#include "kernels/family.h"
#include "ops/primitives.h"

namespace ingot::kernels {

/// The map after the main node, or null.
const Node* epilogue_of(const Group& group);
/// Why the group is not one main node with one result and, at most, a map of its shape after it.
std::optional<std::string> refuse_epilogue(const Group& group);

/// An operand of the map that is not the main node's result.
struct ExtraAccess {
    int input = 0; // among the map's inputs
    Operand operand;
    Shape strides; // per axis of the result; 0 where it repeats
};
std::vector<ExtraAccess> extras(const Problem& p);

class Epilogue {
public:
    /// `groups`: per coordinate of the kernel the axes of the result that it runs over, row major.
    /// Together they name every axis of size other than 1 once. `vector`: EPILOGUE_N.
    Epilogue(const Problem& p, const std::vector<std::vector<int>>& groups, int vector = 1);

    const std::string& text() const { return text_; }
    void add(Args& args) const;
    bool empty() const { return empty_; }

private:
    /// One coordinate's share of an operand's index: a chain of merged axes.
    struct Walk {
        Shape sizes;
        Shape strides;
    };
    struct Access {
        ExtraAccess extra;
        std::vector<Walk> walks; // per coordinate
        std::vector<std::string> names;
        std::vector<int64_t> values; // arguments behind the pointer, i64 strides and i32 sizes
        std::vector<bool> is_size;
        std::string index; // without the last coordinate's share
        std::string last;  // its share
        enum class Last { Zero, Vector, Other } kind = Last::Other;
    };
    void describe(Access& a, int id, size_t coordinates, int vector) const;
    void write(const Problem& p, size_t coordinates, int vector);

    std::vector<Access> accesses_;
    std::string text_;
    bool empty_ = true;
};

} // namespace ingot::kernels
