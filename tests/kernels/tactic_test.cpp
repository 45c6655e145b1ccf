// SPDX-License-Identifier: Apache-2.0
// Names of tactics follow from their parameters, and parse back to them.
#include "kernels/tactic.h"

#include <gtest/gtest.h>

namespace ingot::test {
namespace {

using kernels::algorithm_of;
using kernels::make_tactic;
using kernels::parse_tactic;
using kernels::Tactic;

struct Tiled {
    static constexpr std::string_view pattern = "tiled_{form}_k{keys}x{stages}";
    std::string form;
    int keys = 0, stages = 0;
    template <class Self, class F>
    static void fields(Self& self, F&& field) {
        field("form", self.form);
        field("keys", self.keys);
        field("stages", self.stages);
    }
};
struct Plain : kernels::NoParameters {
    static constexpr std::string_view pattern = "plain";
};
struct OtherPlain : kernels::NoParameters {
    static constexpr std::string_view pattern = "plain";
};
struct Unnamed {
    static constexpr std::string_view pattern = "unnamed";
    int share = 1;
    template <class Self, class F>
    static void fields(Self& self, F&& field) {
        field("share", self.share);
    }
};
struct Misnamed : kernels::NoParameters {
    static constexpr std::string_view pattern = "misnamed_{share}";
};

TEST(Tactic, ItsNameFollowsFromItsParameters) {
    Tactic t = make_tactic(Tiled{"128s1_k", 64, 3}, 2.5);
    EXPECT_EQ(t.name, "tiled_128s1_k_k64x3");
    EXPECT_EQ(t.cost_us, 2.5);
    EXPECT_EQ(t.variant, 0);
    EXPECT_EQ(make_tactic(Plain{}, 1).name, "plain");
}

TEST(Tactic, ItsParametersAreThoseOfItsAlgorithmAlone) {
    Tactic t = make_tactic(Tiled{"a", 1, 2}, 1);
    ASSERT_NE(t.as<Tiled>(), nullptr);
    EXPECT_EQ(t.as<Tiled>()->stages, 2);
    EXPECT_EQ(t.as<Plain>(), nullptr);
    EXPECT_TRUE(make_tactic(Plain{}, 1).is<Plain>());
    EXPECT_FALSE(make_tactic(Plain{}, 1).is<OtherPlain>()) << "of equal patterns";
}

TEST(Tactic, NamesParseBack) {
    const kernels::Algorithm& tiled = algorithm_of<Tiled>();
    for (const Tiled& p : {Tiled{"128s1", 64, 3}, Tiled{"a_kb", -1, 0}, Tiled{"", 7, 12}}) {
        Tactic t = make_tactic(p, 1);
        std::optional<Tactic> back = parse_tactic(tiled, t.name);
        ASSERT_TRUE(back) << t.name;
        EXPECT_EQ(back->name, t.name);
        EXPECT_EQ(back->as<Tiled>()->form, p.form);
        EXPECT_EQ(back->as<Tiled>()->keys, p.keys);
        EXPECT_EQ(back->as<Tiled>()->stages, p.stages);
    }
    EXPECT_TRUE(parse_tactic(algorithm_of<Plain>(), "plain"));
}

TEST(Tactic, OtherTextsAreNoNames) {
    const kernels::Algorithm& tiled = algorithm_of<Tiled>();
    for (const char* name : {"", "tiled", "tiled_a_k", "tiled_a_k64", "tiled_a_k64x",
                             "tiled_a_k64x3 ", "tiled_a_k064x3", "tiled_a_k+64x3",
                             "tiled_a_k64x99999999999", "Tiled_a_k64x3", "norm_tiled_a_k64x3"}) {
        EXPECT_FALSE(parse_tactic(tiled, name)) << name;
    }
    EXPECT_FALSE(parse_tactic(algorithm_of<Plain>(), "plain1"));
}

TEST(TacticDeathTest, EveryFieldIsInTheName) {
    EXPECT_DEATH(make_tactic(Unnamed{2}, 1), "'unnamed' does not name every field");
    EXPECT_DEATH(make_tactic(Misnamed{}, 1),
                 "'misnamed_\\{share\\}' names 'share', which is no field");
}

} // namespace
} // namespace ingot::test
