// SPDX-License-Identifier: Apache-2.0
#include "onnx/proto_builder.h"

namespace ingot::onnx::test {
namespace {

Pb rich_node() {
    const Pb inner = Pb().s(2, "body")
                         .m(1, node("Identity", {"u"}, {"v"}))
                         .m(5, tensor("u", {2}, 7).packed(7, {1, -2}))
                         .m(12, value("v", {2}, 7));
    return node("Everything", {"x", "", "w"}, {"e", ""})
        .s(3, "every")
        .s(7, "custom")
        .s(8, "v2")
        .s(6, "ignored doc")
        .m(5, attribute("f", 1).f(2, 0.5F))
        .m(5, attribute("i", 2).i(3, -7))
        .m(5, attribute("s", 3).s(4, "nchw"))
        .m(5, attribute("t", 4).m(5, tensor("", {2}, 11).packed_d(10, {1.5, -2.5})))
        .m(5, attribute("g", 5).m(6, inner))
        .m(5, attribute("floats", 6).f(7, 1).packed_f(7, {2, 3}))
        .m(5, attribute("ints", 7).i(8, 1).packed(8, {-2, 3}))
        .m(5, attribute("strings", 8).s(9, "a").s(9, ""))
        .m(5, attribute("tensors", 9).m(10, tensor("p", {1}, 6).packed(5, {-3})))
        .m(5, attribute("graphs", 10).m(11, inner).m(11, inner))
        .m(5, attribute("sparse", 11)
                  .m(22, Pb().m(1, tensor("", {1}, 1).f(4, 9))
                             .m(2, tensor("", {1, 2}, 7).packed(7, {1, 2}))
                             .i(3, 2)
                             .i(3, 3)))
        .m(5, Pb().s(1, "untyped").i(3, 4));
}

Pb rich_function() {
    return Pb()
        .s(1, "twice")
        .s(4, "a")
        .s(5, "b")
        .s(6, "scale")
        .m(11, attribute("bias", 1).f(2, 1))
        .m(7, node("Mul", {"a", "a"}, {"b"}).m(5, attribute("alpha", 1).s(21, "scale")))
        .m(9, opset("ai.onnx", 17))
        .s(10, "custom")
        .s(13, "o")
        .m(12, value("b", {2}));
}

} // namespace

std::string rich_model() {
    const Pb dim_named = Pb().s(2, "batch");
    const Pb dim_unknown = Pb().i(1, -1);
    const Pb shape = Pb().m(1, dim_named).m(1, dim_unknown).m(1, Pb()).m(1, Pb().i(1, 3));
    const Pb sequence = Pb().m(4, Pb().m(1, Pb().m(1, Pb().i(1, 1))));
    const Pb g = Pb().s(2, "main")
                     .m(1, node("Relu", {"x"}, {"y"}))
                     .m(1, rich_node())
                     .m(5, tensor("w", {2, 2}, 1).packed_f(4, {1, 2}).f(4, 3).f(4, 4))
                     .m(5, tensor("raw", {3}, 3, "\x01\x02\xff"))
                     .m(5, tensor("nibbles", {3}, 22).packed(5, {0x21, 0x0f}))
                     .m(5, tensor("none", {0, 4}, 1))
                     .m(15, Pb().m(1, tensor("sp", {2}, 1).packed_f(4, {5, 6}))
                                .m(2, tensor("", {2}, 7).packed(7, {0, 5}))
                                .i(3, 6))
                     .m(11, Pb().s(1, "x").m(2, Pb().m(1, Pb().i(1, 1).m(2, shape))))
                     .m(11, Pb().s(1, "seq").m(2, sequence))
                     .m(12, value("y", {2}))
                     .m(12, Pb().s(1, "e"))
                     .m(13, Pb().s(1, "hidden").m(2, Pb().m(1, Pb().i(1, 10))))
                     .m(14, Pb().s(1, "y").m(2, pair("SCALE_TENSOR", "w")))
                     .s(10, "ignored doc");
    return Pb()
        .i(1, 10)
        .s(2, "builder")
        .s(3, "1.0")
        .s(4, "org.example")
        .i(5, 3)
        .m(7, g)
        .m(8, opset("", 17))
        .m(8, opset("custom", 1))
        .m(14, pair("author", "someone"))
        .m(25, rich_function())
        .m(99, Pb().s(1, "a field of the future"))
        .bytes();
}

} // namespace ingot::onnx::test
