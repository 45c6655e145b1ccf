// SPDX-License-Identifier: Apache-2.0
// Groups of a product, perhaps behind a norm, whose columns are heads: ranges of the columns,
// reshaped and permuted, are the results, and ropes turn some of them. Products of few rows turn
// heads and store them where they belong; behind other ones, launches of their own do.
#pragma once

#include "kernels/contraction/normed.h"

namespace ingot::kernels {

/// A range of the columns: slice, reshape, permutes, then a rope, or a map that changes nothing.
struct HeadPart {
    const Node* slice = nullptr;
    std::vector<const Node*> moves;
    const Node* last = nullptr;
    int64_t first = 0, count = 0; // heads
};

/// The parts of such a group, or the reason why it is none.
class HeadGroup {
public:
    explicit HeadGroup(const Group& whole);
    HeadGroup(const HeadGroup&) = delete;
    HeadGroup& operator=(const HeadGroup&) = delete;

    const std::optional<std::string>& reason() const { return reason_; }
    /// The product with its norm; its columns are the result.
    const Group& product() const { return product_; }
    const std::vector<HeadPart>& parts() const { return parts_; }
    int64_t width() const { return width_; } // of a head
    /// The first part that a rope turns.
    const HeadPart& turned() const;

private:
    std::optional<std::string> read();
    std::optional<std::string> read_part(size_t& at);
    std::optional<std::string> count_heads();

    const Group& whole_;
    Values outputs_; // of product_
    Group product_;
    std::vector<HeadPart> parts_;
    int64_t width_ = 0;
    std::optional<std::string> reason_;
};

/// A contraction that stores heads, for one that stores its columns; nullopt where the angles
/// differ between heads.
using WithHeads = std::function<std::optional<Contraction>(Contraction columns)>;

/// A family of products, as seen by these groups.
struct HeadsProduct {
    const NormedProduct& product;
    /// Tactics for few rows that store heads. `norm`: of the rows, or null.
    void (*add_inside)(std::vector<Tactic>& out, const Problem& product, const RowNorm* norm,
                       const WithHeads& heads);
    Emitted (*emit_inside)(const Problem& product, const RowNorm* norm, const WithHeads& heads,
                           const Tactic& t);
};

std::optional<std::string> refuse_heads(const Group& group, const HeadsProduct& f);
void layout_heads(LayoutArgs& args, const HeadsProduct& f);
std::vector<Tactic> heads_tactics(const Problem& p, const HeadsProduct& f);
Emitted emit_heads(const Problem& p, const Tactic& t, const HeadsProduct& f);

} // namespace ingot::kernels
