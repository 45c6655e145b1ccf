// SPDX-License-Identifier: Apache-2.0
// Loops and conditionals.
#include "api/network_fixture.h"
#include "backends/backends.h"

namespace ingot::test {

namespace {

using Control = NetworkTest;
using Op = nv::ElementWiseOperation;

TEST_F(Control, a_loop_that_counts_accumulates_and_stacks) {
    nv::ITensor& x = input("x", {4, 3});
    Tensor zero = Tensor::zeros(DType::F32, {3});
    nv::ILoop* loop = network->addLoop();
    loop->addTripLimit(scalar(4), nv::TripLimit::kCOUNT);
    nv::ITensor& row = *loop->addIterator(x)->getOutput(0);
    nv::IRecurrenceLayer* sum = loop->addRecurrence(constant(zero));
    EXPECT_EQ(list(row.getDimensions()), (std::vector<int64_t>{3}));
    nv::ITensor& next = *network->addElementWise(*sum->getOutput(0), row, Op::kSUM)->getOutput(0);
    sum->setInput(1, next);
    nv::ILoopOutputLayer* last =
        loop->addLoopOutput(*sum->getOutput(0), nv::LoopOutput::kLAST_VALUE);
    nv::ILoopOutputLayer* all = loop->addLoopOutput(next, nv::LoopOutput::kCONCATENATE, 1);
    all->setInput(1, scalar(4));
    nv::ILoopOutputLayer* back = loop->addLoopOutput(next, nv::LoopOutput::kREVERSE);
    back->setInput(1, scalar(4));
    EXPECT_EQ(list(all->getOutput(0)->getDimensions()), (std::vector<int64_t>{3, 4}));
    // A layer after the loop.
    auto* twice = network->addElementWise(*last->getOutput(0), *last->getOutput(0), Op::kSUM);
    for (nv::ILayer* l : std::initializer_list<nv::ILayer*>{last, all, back, twice}) {
        network->markOutput(*l->getOutput(0));
    }
    Tensor data = numbers({4, 3});
    auto y = run({data});
    auto sum_to = [&](int64_t column, int64_t rows) {
        double s = 0;
        for (int64_t i = 0; i < rows; ++i) {
            s += data.get_f64(i * 3 + column);
        }
        return s;
    };
    expect_elements(y, 0, {3}, [&](int64_t i) { return sum_to(i, 4); });
    expect_elements(y, 1, {3, 4}, [&](int64_t i) { return sum_to(i / 4, i % 4 + 1); });
    expect_elements(y, 2, {4, 3}, [&](int64_t i) { return sum_to(i % 3, 4 - i / 3); });
    expect_elements(y, 3, {3}, [&](int64_t i) { return 2 * sum_to(i, 4); });
}

TEST_F(Control, a_loop_that_goes_on_while_a_condition_holds) {
    nv::ITensor& limit = input("limit", {});
    nv::ILoop* loop = network->addLoop();
    nv::IRecurrenceLayer* v = loop->addRecurrence(constant(Tensor::scalar(DType::F32, 1)));
    nv::ITensor& now = *v->getOutput(0);
    loop->addTripLimit(*network->addElementWise(now, limit, Op::kLESS)->getOutput(0),
                       nv::TripLimit::kWHILE);
    v->setInput(1, *network->addElementWise(now, now, Op::kSUM)->getOutput(0));
    auto* last = loop->addLoopOutput(now, nv::LoopOutput::kLAST_VALUE);
    network->markOutput(*last->getOutput(0));
    std::shared_ptr<const Engine> engine = build();
    ASSERT_NE(engine, nullptr);
    Context context(engine, cpu_backend());
    for (auto [most, expected] :
         {std::pair(0.5, 1.0), std::pair(1.5, 2.0), std::pair(100.0, 128.0)}) {
        Tensor y = context.run(std::vector{Tensor::scalar(DType::F32, most)})[0];
        EXPECT_EQ(y.get_f64(0), expected) << most;
    }
}

TEST_F(Control, a_loop_in_a_loop) {
    nv::ITensor& x = input("x", {2, 3});
    Tensor zero = Tensor::scalar(DType::F32, 0);
    nv::ILoop* outer = network->addLoop();
    outer->addTripLimit(scalar(2), nv::TripLimit::kCOUNT);
    nv::ITensor& row = *outer->addIterator(x)->getOutput(0);
    nv::IRecurrenceLayer* total = outer->addRecurrence(constant(zero));
    nv::ILoop* inner = network->addLoop();
    inner->addTripLimit(scalar(3), nv::TripLimit::kCOUNT);
    nv::ITensor& element = *inner->addIterator(row)->getOutput(0);
    nv::IRecurrenceLayer* sum = inner->addRecurrence(*total->getOutput(0));
    sum->setInput(1, *network->addElementWise(*sum->getOutput(0), element, Op::kSUM)->getOutput(0));
    auto* inner_last = inner->addLoopOutput(*sum->getOutput(0), nv::LoopOutput::kLAST_VALUE);
    total->setInput(1, *inner_last->getOutput(0));
    auto* last = outer->addLoopOutput(*total->getOutput(0), nv::LoopOutput::kLAST_VALUE);
    Tensor data = numbers({2, 3});
    auto y = run(last, {data});
    expect_elements(y, 0, {}, [&](int64_t) {
        double s = 0;
        for (int64_t i = 0; i < 6; ++i) {
            s += data.get_f64(i);
        }
        return s;
    });
}

TEST_F(Control, a_conditional_runs_one_branch) {
    nv::ITensor& c = input("c", nv::DataType::kBOOL, {});
    nv::ITensor& x = input("x", {2, 3});
    nv::ITensor& z = input("z", {2, 3});
    nv::IIfConditional* conditional = network->addIfConditional();
    conditional->setCondition(c);
    nv::ITensor& inside = *conditional->addInput(x)->getOutput(0);
    nv::ITensor& yes = *network->addElementWise(inside, z, Op::kSUM)->getOutput(0);
    auto* slice = network->addSlice(inside, dims({0, 1}), dims({2, 2}), dims({1, 1}));
    auto* out = conditional->addOutput(yes, *slice->getOutput(0));
    EXPECT_EQ(list(out->getOutput(0)->getDimensions()), (std::vector<int64_t>{2, -1}));
    network->markOutput(*out->getOutput(0));
    std::shared_ptr<const Engine> engine = build();
    ASSERT_NE(engine, nullptr);
    Context context(engine, cpu_backend());
    Tensor dx = numbers({2, 3});
    Tensor dz = numbers({2, 3}, 3, 5);
    std::vector<int> flag = {1};
    auto y = context.run(std::vector{Tensor::of<int>(DType::Bool, {}, flag), dx, dz});
    expect_elements(y, 0, {2, 3}, [&](int64_t i) { return dx.get_f64(i) + dz.get_f64(i); });
    flag[0] = 0;
    y = context.run(std::vector{Tensor::of<int>(DType::Bool, {}, flag), dx, dz});
    expect_elements(y, 0, {2, 2}, [&](int64_t i) { return dx.get_f64(i / 2 * 3 + i % 2 + 1); });
}

TEST_F(Control, mistakes_in_loops_are_named) {
    nv::ITensor& x = input("x", {4});
    nv::ILoop* loop = network->addLoop();
    loop->setName("count");
    nv::IRecurrenceLayer* r = loop->addRecurrence(x);
    auto* last = loop->addLoopOutput(*r->getOutput(0), nv::LoopOutput::kLAST_VALUE);
    network->markOutput(*last->getOutput(0));
    auto message = [&] {
        EXPECT_EQ(builder->buildSerializedNetwork(*network, *config), nullptr);
        return logger.errors.back();
    };
    EXPECT_EQ(message(),
              "IBuilder::buildSerializedNetwork: loop 'count': it has no trip limit; add "
              "one with addTripLimit()");
    ASSERT_NE(loop->addTripLimit(scalar(2), nv::TripLimit::kCOUNT), nullptr);
    EXPECT_EQ(loop->addTripLimit(scalar(2), nv::TripLimit::kCOUNT), nullptr);
    EXPECT_EQ(logger.errors.back(),
              "ILoop::addTripLimit: loop 'count' has a limit of this kind already");
    r->setName("sum");
    EXPECT_EQ(message(),
              "IBuilder::buildSerializedNetwork: loop 'count': layer 'sum' (Recurrence): "
              "input 1, the next value, is not set");
}

} // namespace

} // namespace ingot::test
