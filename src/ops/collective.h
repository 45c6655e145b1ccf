// SPDX-License-Identifier: Apache-2.0
// collective: what several GPUs, each of which runs this graph, exchange through a communicator.
#pragma once

#include "ir/graph.h"

namespace ingot {

/// x -> x of this rank and of the others. All ranks run the op on inputs of one type. Operations:
///   all_reduce      the reduction of all x, element by element
///   reduce          the same at `root`, zeros elsewhere
///   reduce_scatter  of the reduction, cut into `ranks` parts along axis 0, the part of this rank
///   broadcast       x of `root`
///   all_gather      all x, one after another along axis 0
///   gather          the same at `root`, zeros elsewhere
///   scatter         of x of `root`, cut into parts along axis 0, the part of this rank
///   all_to_all      part i goes to rank i, and part j of the result comes from rank j
/// The op has no reference evaluation: it runs on GPUs only.
struct Collective {
    std::string operation = "all_reduce";
    /// "sum", "prod", "min", "max", "avg" for the operations that reduce, else "".
    std::string reduction = "sum";
    /// How many take part, 2 or more.
    int64_t ranks = 2;
    /// Which of the communicator's ranks these are, in the order of the parts; empty: all.
    std::vector<int64_t> group;
    /// For operations that have one: a rank of the communicator; -1 for the others.
    int64_t root = -1;

    static void fields(auto& s, auto&& f) {
        f("operation", s.operation), f("reduction", s.reduction), f("ranks", s.ranks),
            f("group", s.group), f("root", s.root);
    }

    bool reduces() const;
    bool has_root() const;
    /// The position of a rank of the communicator among those that take part; -1 for one that does
    /// not.
    int64_t position(int64_t rank) const;
};
extern const OpDef collective_def;

namespace ops {
/// x itself where only one rank takes part. Errors: InvalidModel.
Value collective(Graph& g, Collective c, Value x);
} // namespace ops

/// Whether the graph or a body of it exchanges data.
bool has_collectives(const Graph& g);

/// A rank of a communicator.
struct Rank {
    int64_t rank = 0;
    int64_t ranks = 1;
};
/// Errors: InvalidArgument naming the node when a collective of the graph, or of a body, cannot run
/// as this rank.
void check_collectives(const Graph& g, const Rank& rank);

} // namespace ingot
