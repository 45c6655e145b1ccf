// SPDX-License-Identifier: Apache-2.0
// collective: data exchange through a communicator between GPUs that all run this graph.
#pragma once

#include "ir/graph.h"

namespace ingot {

/// x -> x combined over the ranks. All ranks run the op on inputs of the same type. Operations:
///   all_reduce      the reduction of all x, element by element
///   reduce          the same at `root`, zeros elsewhere
///   reduce_scatter  this rank's part of the reduction, split into `ranks` parts along axis 0
///   broadcast       x of `root`
///   all_gather      all x, one after another along axis 0
///   gather          the same at `root`, zeros elsewhere
///   scatter         this rank's part of x of `root`, split into `ranks` parts along axis 0
///   all_to_all      part i goes to rank i, and part j of the result comes from rank j
/// The op has no reference evaluation: it runs on GPUs only.
struct Collective {
    std::string operation = "all_reduce";
    /// "sum", "prod", "min", "max", "avg" for the operations that reduce, else "".
    std::string reduction = "sum";
    /// Number of participating ranks, 2 or more.
    int64_t ranks = 2;
    /// The participating ranks of the communicator, in the order of the parts; empty: all.
    std::vector<int64_t> group;
    /// A rank of the communicator, for operations that have a root; else -1.
    int64_t root = -1;

    static void fields(auto& s, auto&& f) {
        f("operation", s.operation), f("reduction", s.reduction), f("ranks", s.ranks),
            f("group", s.group), f("root", s.root);
    }

    bool reduces() const;
    bool has_root() const;
    /// The position of a communicator's rank among the participating ones; -1 when it is not one.
    int64_t position(int64_t rank) const;
};
extern const OpDef collective_def;

namespace ops {
/// Returns x itself when only one rank takes part. Errors: InvalidModel.
Value collective(Graph& g, Collective c, Value x);
} // namespace ops

/// Whether the graph or one of its bodies exchanges data.
bool has_collectives(const Graph& g);

/// A rank of a communicator.
struct Rank {
    int64_t rank = 0;
    int64_t ranks = 1;
};
/// Errors: InvalidArgument naming the node when a collective of the graph, or of a body, cannot run
/// on this rank.
void check_collectives(const Graph& g, const Rank& rank);

} // namespace ingot
