// SPDX-License-Identifier: Apache-2.0
// Collectives: data exchange between GPUs.
#include "ops/collective.h"

#include "api/tensorrt/layers/checks.h"
#include "api/tensorrt/network/network.h"

#include <set>

namespace ingot::api {

namespace {

std::string operation_of(nv::CollectiveOperation op) {
    constexpr const char* names[] = {"all_reduce",     "all_gather", "broadcast", "reduce",
                                     "reduce_scatter", "all_to_all", "gather",    "scatter"};
    return names[static_cast<size_t>(checked(op, "the operation"))];
}

std::string reduction_of(nv::ReduceOperation op) {
    constexpr const char* names[] = {"sum", "prod", "max", "min", "avg", ""};
    return names[static_cast<size_t>(checked(op, "the reduction"))];
}

class DistCollective final : public Layer<nv::IDistCollectiveLayer> {
public:
    DistCollective(nv::CollectiveOperation op, nv::ReduceOperation reduce, int64_t root,
                   const int64_t* groups, int64_t group_size)
        : Layer({nv::LayerType::kDIST_COLLECTIVE, "DistCollective"}, 1) {
        op_.operation = operation_of(op);
        op_.reduction = reduction_of(reduce);
        require(op_.reduces() == !op_.reduction.empty(), ErrorCode::InvalidArgument,
                "the operation ",
                op_.reduces() ? "reduces, but the reduction is kNONE"
                              : "reduces nothing, but the reduction is not kNONE");
        require(group_size >= 0 && (group_size == 0 || groups != nullptr),
                ErrorCode::InvalidArgument, "there are ", group_size, " ranks in ",
                groups == nullptr ? "a group that is nullptr" : "the group");
        op_.group.assign(groups, groups + group_size);
        std::set<int64_t> distinct(op_.group.begin(), op_.group.end());
        require(distinct.size() == op_.group.size() && (distinct.empty() || *distinct.begin() >= 0),
                ErrorCode::InvalidArgument, "the group is ", op_.group,
                ", expected ranks, each once");
        op_.root = op_.has_root() ? root : -1;
        require(!op_.has_root() || (root >= 0 && (group_size == 0 || distinct.contains(root))),
                ErrorCode::InvalidArgument, "the root is ", root, ", expected ",
                group_size == 0 ? "a rank" : str("one of ", op_.group));
    }

    bool spans_ranks() const override { return true; }

    Values emit(const Emitter& e) override {
        Collective c = op_;
        c.ranks = c.group.empty() ? rank_count : static_cast<int64_t>(c.group.size());
        require(rank_count == 1 || rank_count == c.ranks, ErrorCode::InvalidArgument,
                "the group has ", c.ranks, " ranks, and setNbRanks() says ", rank_count);
        require(!c.has_root() || c.position(c.root) >= 0, ErrorCode::InvalidArgument,
                "the root is rank ", c.root, ", and ", c.ranks, c.ranks == 1 ? " takes" : " take",
                " part: say how many with setNbRanks()");
        return {ops::collective(e.g, std::move(c), e.in[0])};
    }

private:
    Collective op_; // without the number of ranks
};

} // namespace

nv::IDistCollectiveLayer* Network::addDistCollective(nv::ITensor& input,
                                                     nv::CollectiveOperation dist_collective_op,
                                                     nv::ReduceOperation reduce_op, int64_t root,
                                                     int64_t* groups, int64_t group_size) noexcept {
    return add<DistCollective>("INetworkDefinition::addDistCollective", {&input},
                               dist_collective_op, reduce_op, root, groups, group_size);
}

} // namespace ingot::api
